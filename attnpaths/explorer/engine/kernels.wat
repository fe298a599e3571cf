;; Two kernels in double precision, two numbers at a time (f64x2); `wat2wasm kernels.wat` gives the bytes
;; of kernels.js. All matrices are row-major and live in one memory; arguments are byte offsets.
;;   gemm(a, m, k, b, n, c): c [m, n] = a [m, k] b [k, n]; m and n multiples of 4
;;   draw(s): 312 numbers of the Mersenne Twister whose 624 words stand at s, and four more places after
;;     them; its next words go to s + 2512, and what torch.rand makes of them to s + 5008
;;   gemv(a, stride, m, k, x, y): y [m] = a [m, k] x, rows `stride` bytes apart; m multiple of 4, k of 2
(module (memory (export "memory") 0)
(func (export "gemm") (param $a i32) (param $m i32) (param $k i32) (param $b i32) (param $n i32) (param $c i32)
  (local $j i32) (local $p i32) (local $pa i32) (local $pb i32) (local $stride i32) (local $row i32) (local $x0 v128) (local $x1 v128) (local $w v128) (local $s00 v128) (local $s01 v128) (local $s10 v128) (local $s11 v128) (local $s20 v128) (local $s21 v128) (local $s30 v128) (local $s31 v128)
  (local.set $stride (i32.shl (local.get $k) (i32.const 3))) (local.set $row (i32.shl (local.get $n) (i32.const 3)))
  (loop $rows
    (local.set $j (local.get $b))
    (loop $columns
      (local.set $s00 (v128.const f64x2 0 0)) (local.set $s01 (v128.const f64x2 0 0))
(local.set $s10 (v128.const f64x2 0 0)) (local.set $s11 (v128.const f64x2 0 0))
(local.set $s20 (v128.const f64x2 0 0)) (local.set $s21 (v128.const f64x2 0 0))
(local.set $s30 (v128.const f64x2 0 0)) (local.set $s31 (v128.const f64x2 0 0))
      (local.set $pa (local.get $a)) (local.set $pb (local.get $j)) (local.set $p (local.get $k))
      (loop $inner
        (local.set $x0 (v128.load (local.get $pb))) (local.set $x1 (v128.load offset=16 (local.get $pb)))
        (local.set $w (v128.load64_splat (local.get $pa))) (local.set $s00 (f64x2.add (local.get $s00) (f64x2.mul (local.get $w) (local.get $x0)))) (local.set $s01 (f64x2.add (local.get $s01) (f64x2.mul (local.get $w) (local.get $x1))))
(local.set $w (v128.load64_splat (i32.add (local.get $pa) (i32.mul (local.get $stride) (i32.const 1))))) (local.set $s10 (f64x2.add (local.get $s10) (f64x2.mul (local.get $w) (local.get $x0)))) (local.set $s11 (f64x2.add (local.get $s11) (f64x2.mul (local.get $w) (local.get $x1))))
(local.set $w (v128.load64_splat (i32.add (local.get $pa) (i32.mul (local.get $stride) (i32.const 2))))) (local.set $s20 (f64x2.add (local.get $s20) (f64x2.mul (local.get $w) (local.get $x0)))) (local.set $s21 (f64x2.add (local.get $s21) (f64x2.mul (local.get $w) (local.get $x1))))
(local.set $w (v128.load64_splat (i32.add (local.get $pa) (i32.mul (local.get $stride) (i32.const 3))))) (local.set $s30 (f64x2.add (local.get $s30) (f64x2.mul (local.get $w) (local.get $x0)))) (local.set $s31 (f64x2.add (local.get $s31) (f64x2.mul (local.get $w) (local.get $x1))))
        (local.set $pa (i32.add (local.get $pa) (i32.const 8))) (local.set $pb (i32.add (local.get $pb) (local.get $row)))
        (br_if $inner (local.tee $p (i32.add (local.get $p) (i32.const -1)))))
      (local.set $p (i32.add (local.get $c) (i32.sub (local.get $j) (local.get $b))))
      (v128.store offset=0 (local.get $p) (local.get $s00)) (v128.store offset=16 (local.get $p) (local.get $s01)) (local.set $p (i32.add (local.get $p) (local.get $row)))
(v128.store offset=0 (local.get $p) (local.get $s10)) (v128.store offset=16 (local.get $p) (local.get $s11)) (local.set $p (i32.add (local.get $p) (local.get $row)))
(v128.store offset=0 (local.get $p) (local.get $s20)) (v128.store offset=16 (local.get $p) (local.get $s21)) (local.set $p (i32.add (local.get $p) (local.get $row)))
(v128.store offset=0 (local.get $p) (local.get $s30)) (v128.store offset=16 (local.get $p) (local.get $s31)) (local.set $p (i32.add (local.get $p) (local.get $row)))
      (br_if $columns (i32.lt_u (local.tee $j (i32.add (local.get $j) (i32.const 32))) (i32.add (local.get $b) (local.get $row)))))
    (local.set $a (i32.add (local.get $a) (i32.mul (local.get $stride) (i32.const 4)))) (local.set $c (i32.add (local.get $c) (i32.mul (local.get $row) (i32.const 4))))
    (br_if $rows (i32.gt_s (local.tee $m (i32.add (local.get $m) (i32.const -4))) (i32.const 0)))))
(func (export "gemv") (param $a i32) (param $stride i32) (param $m i32) (param $k i32) (param $x i32) (param $y i32)
  (local $p i32) (local $px i32) (local $end i32) (local $v v128) (local $s0 v128) (local $s1 v128) (local $s2 v128) (local $s3 v128)
  (local.set $end (i32.add (local.get $x) (i32.shl (local.get $k) (i32.const 3))))
  (loop $rows
    (local.set $s0 (v128.const f64x2 0 0))
(local.set $s1 (v128.const f64x2 0 0))
(local.set $s2 (v128.const f64x2 0 0))
(local.set $s3 (v128.const f64x2 0 0)) (local.set $p (local.get $a)) (local.set $px (local.get $x))
    (block $short (br_if $short (i32.eqz (local.get $k)))
      (loop $inner
        (local.set $v (v128.load (local.get $px))) (local.set $s0 (f64x2.add (local.get $s0) (f64x2.mul (v128.load (local.get $p)) (local.get $v))))
(local.set $s1 (f64x2.add (local.get $s1) (f64x2.mul (v128.load (i32.add (local.get $p) (i32.mul (local.get $stride) (i32.const 1)))) (local.get $v))))
(local.set $s2 (f64x2.add (local.get $s2) (f64x2.mul (v128.load (i32.add (local.get $p) (i32.mul (local.get $stride) (i32.const 2)))) (local.get $v))))
(local.set $s3 (f64x2.add (local.get $s3) (f64x2.mul (v128.load (i32.add (local.get $p) (i32.mul (local.get $stride) (i32.const 3)))) (local.get $v))))
        (local.set $p (i32.add (local.get $p) (i32.const 16)))
        (br_if $inner (i32.lt_u (local.tee $px (i32.add (local.get $px) (i32.const 16))) (local.get $end)))))
    (f64.store offset=0 (local.get $y) (f64.add (f64x2.extract_lane 0 (local.get $s0)) (f64x2.extract_lane 1 (local.get $s0))))
(f64.store offset=8 (local.get $y) (f64.add (f64x2.extract_lane 0 (local.get $s1)) (f64x2.extract_lane 1 (local.get $s1))))
(f64.store offset=16 (local.get $y) (f64.add (f64x2.extract_lane 0 (local.get $s2)) (f64x2.extract_lane 1 (local.get $s2))))
(f64.store offset=24 (local.get $y) (f64.add (f64x2.extract_lane 0 (local.get $s3)) (f64x2.extract_lane 1 (local.get $s3))))
    (local.set $a (i32.add (local.get $a) (i32.mul (local.get $stride) (i32.const 4)))) (local.set $y (i32.add (local.get $y) (i32.const 32)))
    (br_if $rows (i32.gt_s (local.tee $m (i32.add (local.get $m) (i32.const -4))) (i32.const 0)))))
(func (export "draw") (param $s i32)
  (local $i i32) (local $far i32) (local $end i32) (local $x v128) (local $y v128)
  ;; word i + 397 is far off, and 227 words before where that is beyond the last
  (local.set $i (local.get $s)) (local.set $far (i32.add (local.get $s) (i32.const 1588))) (local.set $end (i32.add (local.get $s) (i32.const 2496)))
  (loop $words
      (local.set $y (v128.or (v128.and (v128.load (local.get $i)) (v128.const i32x4 0x80000000 0x80000000 0x80000000 0x80000000)) (v128.and (v128.load offset=4 (local.get $i)) (v128.const i32x4 0x7fffffff 0x7fffffff 0x7fffffff 0x7fffffff))))
      (local.set $x (v128.xor (v128.xor (v128.load (local.get $far)) (i32x4.shr_u (local.get $y) (i32.const 1))) (v128.and (i32x4.neg (v128.and (local.get $y) (v128.const i32x4 1 1 1 1))) (v128.const i32x4 0x9908b0df 0x9908b0df 0x9908b0df 0x9908b0df))))
      (v128.store (local.get $i) (local.get $x))
      (local.set $x (v128.xor (local.get $x) (i32x4.shr_u (local.get $x) (i32.const 11))))
      (local.set $x (v128.xor (local.get $x) (v128.and (i32x4.shl (local.get $x) (i32.const 7)) (v128.const i32x4 0x9d2c5680 0x9d2c5680 0x9d2c5680 0x9d2c5680))))
      (local.set $x (v128.xor (local.get $x) (v128.and (i32x4.shl (local.get $x) (i32.const 15)) (v128.const i32x4 0xefc60000 0xefc60000 0xefc60000 0xefc60000))))
      (v128.store offset=2512 (local.get $i) (v128.xor (local.get $x) (i32x4.shr_u (local.get $x) (i32.const 18))))
      ;; the first four stand again behind the last, where the last look for them
      (if (i32.eq (local.get $i) (local.get $s)) (then (v128.store offset=2496 (local.get $s) (v128.load (local.get $s)))))
      (local.set $i (i32.add (local.get $i) (i32.const 16)))
      (local.set $far (i32.add (local.get $far) (i32.const 16)))
      (if (i32.eq (local.get $i) (i32.add (local.get $s) (i32.const 912))) (then (local.set $far (i32.add (local.get $s) (i32.const 4)))))
      (br_if $words (i32.lt_u (local.get $i) (local.get $end))))
  (local.set $i (local.get $s))
  (loop $numbers
    (f64.store offset=5008 (local.get $i) (f64.mul (f64.const 0x1p-53) (f64.convert_i64_u (i64.and (i64.rotl (i64.load offset=2512 (local.get $i)) (i64.const 32)) (i64.const 0x1fffffffffffff)))))
    (br_if $numbers (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 8))) (local.get $end))))))
