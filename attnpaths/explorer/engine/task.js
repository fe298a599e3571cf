// The tasks of attnpaths.tasks.markov and their features. Noise meets the random heads only once, in `startSplit`;
// σ∥, σ⊥ and the flip probabilities enter afterwards, in `attend`, through two numbers a token:
// token t is x_t = (c_{t,h} on half h + σ⊥Z_t, e_t) with c_{t,h} = √2[state] + σ∥ mean(η_t over h).
import { heap } from './kernels.js';
import { Generator, seedWords } from './random.js';

const DIM = 200;
const HALF = DIM / 2;

// a head W [D, D] in the pieces that the tokens need
export const randomHead = (seed, T, options) => {
  const generator = new Generator(seed, options), n = T + 1, D = DIM + n;
  const ff = generator.normal(new Float64Array(DIM * DIM)).map((x) => x / DIM);
  const pp = generator.normal(new Float64Array(n * n));
  const all = generator.normal(new Float64Array(D * D)).map((x) => x / Math.sqrt(DIM));
  // fp[a, t] = W[a, dim + t], pf[a, s] = W[dim + s, a]: both with the feature first
  const fp = new Float64Array(DIM * n), pf = new Float64Array(DIM * n);
  for (let a = 0; a < DIM; a += 1) {
    for (let t = 0; t < n; t += 1) { fp[a * n + t] = all[a * D + DIM + t]; pf[a * n + t] = all[(DIM + t) * D + a]; }
  }
  // what the constant halves see: W 1_h, Wᵀ 1_h, 1_hᵀ W 1_h', and the same of fp, pf
  const ones = { right: new Float64Array(2 * DIM), left: new Float64Array(2 * DIM), both: new Float64Array(4), fp: new Float64Array(2 * n), pf: new Float64Array(2 * n) };
  for (let a = 0; a < DIM; a += 1) {
    const h = a < HALF ? 0 : 1;
    for (let b = 0; b < DIM; b += 1) {
      const g = b < HALF ? 0 : 1, w = ff[a * DIM + b];
      ones.right[g * DIM + a] += w;
      ones.left[h * DIM + b] += w;
      ones.both[2 * h + g] += w;
    }
    for (let t = 0; t < n; t += 1) { ones.fp[h * n + t] += fp[a * n + t]; ones.pf[h * n + t] += pf[a * n + t]; }
  }
  return { ff, fp, pf, pp, ones };
};

// Sequences that are drawn a few at a time, with all products of their noise and the random heads:
// square[s, t] = Z_sᵀ W Z_t, line what is linear in Z, left and right its products with the halves.
// `spare`: an array that may hold the noise, since new memory takes its time.
export const startSplit = (seed, count, T, heads, options, spare) => {
  const generator = new Generator(seed, options), n = T + 1, size = DIM * T, [W1, W2] = heads;
  const columns = Math.ceil(T / 4) * 4, rows = Math.ceil((DIM + 2 * n + 7) / 4) * 4;
  // what multiplies Z from the left, in one matrix
  // and what multiplies the last token's Z in layer 2, where it alone asks
  const rows2 = Math.ceil((DIM + n + 2) / 4) * 4;
  let top = 0;
  const [A, A2, Z, AZ, ZT, ZAZ, G, Q] = [rows * DIM, rows2 * DIM, DIM * columns, rows * columns, columns * DIM, columns * columns, rows2, columns]
    .map((length) => (top += length) - length);
  const h = heap(top, options), { at } = h;
  const [FP, PF, LEFT, RIGHT, RIGHT2, LAST2] = [DIM, DIM + n, DIM + 2 * n, DIM + 2 * n + 2, DIM + 2 * n + 4, DIM + 2 * n + 6];
  at.set(W1.ff, A);
  for (let a = 0; a < DIM; a += 1) {
    for (let t = 0; t < n; t += 1) { at[A + (FP + t) * DIM + a] = W1.fp[a * n + t]; at[A + (PF + t) * DIM + a] = W1.pf[a * n + t]; }
    at[A + LAST2 * DIM + a] = W2.fp[a * n + T];
    for (let s = 0; s < n; s += 1) at[A2 + (DIM + s) * DIM + a] = W2.pf[a * n + s];
  }
  at.set(W2.ff, A2);
  at.set(W2.ones.left, A2 + (DIM + n) * DIM);
  at.set(W1.ones.left, A + LEFT * DIM);
  at.set(W1.ones.right, A + RIGHT * DIM);
  at.set(W2.ones.right, A + RIGHT2 * DIM);
  const numbers = (each) => new Float64Array(count * each);
  const split = {
    count, T, done: 0, y: labels(count),
    uniform: generator.uniform(numbers(T)), noise: spare?.length === count * size ? spare : numbers(size), mean: numbers(2 * T),
    square: numbers(T * T), line: numbers(n * n), left: numbers(2 * T), right: numbers(2 * T),
    square2: numbers(T), line2: numbers(n), left2: numbers(2), right2: numbers(2 * T),
  };
  const { noise, mean, square, line, square2, line2, left2 } = split;
  const one = (e) => {
    const z = e * size, m = e * 2 * T;
    for (let a = 0; a < DIM; a += 1) for (let t = 0, to = m + (a < HALF ? 0 : T); t < T; t += 1) mean[to + t] += noise[z + a * T + t] / HALF;
    for (let a = 0; a < DIM; a += 1) {
      for (let t = 0, from = m + (a < HALF ? 0 : T); t < T; t += 1) {
        const x = (noise[z + a * T + t] -= mean[from + t]);
        at[Z + a * columns + t] = x;
        at[ZT + t * DIM + a] = x;
      }
    }
    h.gemm(A, rows, DIM, Z, columns, AZ);
    h.gemm(ZT, columns, DIM, AZ, columns, ZAZ);
    const row = (r) => AZ + r * columns, copy = (array, r, count = 2) => {
      for (let i = 0; i < count; i += 1) array.set(at.subarray(row(r + i), row(r + i) + T), e * count * T + i * T);
    };
    for (let s = 0; s < T; s += 1) square.set(at.subarray(ZAZ + s * columns, ZAZ + s * columns + T), e * T * T + s * T);
    for (let s = 0; s < T; s += 1) {
      for (let t = 0; t < n; t += 1) {
        line[e * n * n + (s + 1) * n + t] += at[row(FP + t) + s];
        line[e * n * n + t * n + s + 1] += at[row(PF + t) + s];
      }
    }
    copy(split.left, LEFT);
    copy(split.right, RIGHT);
    copy(split.right2, RIGHT2);
    h.gemv(A2, DIM, rows2, DIM, ZT + (T - 1) * DIM, G);
    h.gemv(ZT, DIM, columns, DIM, G, Q);
    for (let s = 0; s < T; s += 1) { square2[e * T + s] = at[Q + s]; line2[e * n + s + 1] = at[row(LAST2) + s]; }
    for (let s = 0; s < n; s += 1) line2[e * n + s] += at[G + DIM + s];
    for (let i = 0; i < 2; i += 1) left2[2 * e + i] = at[G + DIM + n + i];
  };
  // torch's blocks of 16 numbers end with every second example
  split.more = (wanted) => {
    const from = split.done, to = Math.min(count, from + 2 * Math.ceil(wanted / 2));
    generator.normal(noise.subarray(from * size, to * size));
    for (let e = from; e < to; e += 1) one(e);
    split.done = to;
    return to < count;
  };
  return split;
};

// classes are balanced, +1 first
export const labels = (count) => Float64Array.from({ length: count }, (_, i) => (i < Math.ceil(count / 2) ? 1 : -1));

const softmaxColumns = (logits, n) => {
  for (let t = 0; t < n; t += 1) {
    let most = -Infinity, sum = 0;
    for (let s = 0; s < n; s += 1) most = Math.max(most, logits[s * n + t]);
    for (let s = 0; s < n; s += 1) sum += (logits[s * n + t] = Math.exp(logits[s * n + t] - most));
    for (let s = 0; s < n; s += 1) logits[s * n + t] /= sum;
  }
};

// For one example after another: c [2, n], what each token is on either half; `states` ±1; and
// reach [4, n], how much of each token arrives along each path. The arrays are filled anew each time.
export const attend = (split, heads, { sigmaParallel, sigmaPerp, pFlip, uniform = false, beta = 10 }) => {
  const { T, y, mean, square, line, left, right, square2, line2, left2, right2 } = split, n = T + 1, [W1, W2] = heads;
  const c = new Float64Array(2 * n), diff = new Float64Array(n), states = new Int8Array(T), reach = new Float64Array(4 * n);
  const good = new Float64Array(n * n), random = new Float64Array(n * n).fill(1 / n), asks = new Float64Array(n);
  const at = (e) => {
    const stay = 1 - (y[e] === 1 ? pFlip[0] : pFlip[1]);
    let state = 1;
    for (let t = 0; t < T; t += 1) {
      const draw = split.uniform[e * T + t];
      state *= t ? (draw < stay ? 1 : -1) : (draw >= 0.5 ? 1 : -1);
      states[t] = state;
      for (let h = 0; h < 2; h += 1) {
        c[h * n + t + 1] = sigmaParallel * mean[e * 2 * T + h * T + t] + ((h === 0) === (state === 1) ? Math.SQRT2 : 0);
      }
      diff[t + 1] = (Math.SQRT2 * HALF * (c[t + 1] - c[n + t + 1])) / DIM;
    }
    const sq = e * T * T, ln = e * n * n, lr = e * 2 * T, ones = W1.ones;
    for (let s = 0; s < n; s += 1) {
      const c0 = c[s], c1 = c[n + s], r0 = s ? right[lr + s - 1] : 0, r1 = s ? right[lr + T + s - 1] : 0;
      for (let t = 0; t < n; t += 1) {
        good[s * n + t] = beta * (diff[s] * diff[t] + (s === 0 && t > 0 ? 1.5 : t === s + 1 ? 1 : 0));
        if (uniform) continue;
        const d0 = c[t], d1 = c[n + t];
        let x = sigmaPerp * line[ln + s * n + t] + W1.pp[s * n + t];
        x += c0 * (ones.fp[t] + d0 * ones.both[0] + d1 * ones.both[1]) + c1 * (ones.fp[n + t] + d0 * ones.both[2] + d1 * ones.both[3]);
        x += d0 * ones.pf[s] + d1 * ones.pf[n + s];
        if (s && t) x += sigmaPerp * (sigmaPerp * square[sq + (s - 1) * T + t - 1] + c0 * left[lr + t - 1] + c1 * left[lr + T + t - 1] + d0 * r0 + d1 * r1);
        random[s * n + t] = beta * x;
      }
    }
    softmaxColumns(good, n);
    if (!uniform) softmaxColumns(random, n);
    const one2 = W2.ones, d0 = c[T], d1 = c[n + T];
    let most = -Infinity, sum = 0;
    for (let s = 0; s < n; s += 1) {
      const c0 = c[s], c1 = c[n + s];
      let x = sigmaPerp * line2[e * n + s] + W2.pp[s * n + T];
      x += c0 * (one2.fp[T] + d0 * one2.both[0] + d1 * one2.both[1]) + c1 * (one2.fp[n + T] + d0 * one2.both[2] + d1 * one2.both[3]);
      x += d0 * one2.pf[s] + d1 * one2.pf[n + s];
      if (s) x += sigmaPerp * (sigmaPerp * square2[e * T + s - 1] + c0 * left2[2 * e] + c1 * left2[2 * e + 1] + d0 * right2[lr + s - 1] + d1 * right2[lr + T + s - 1]);
      asks[s] = beta * x;
      most = Math.max(most, asks[s]);
    }
    for (let s = 0; s < n; s += 1) sum += (asks[s] = Math.exp(asks[s] - most));
    for (let s = 0; s < n; s += 1) {
      let a = 0, b = 0, u = 0, v = 0;
      for (let t = 0; t < n; t += 1) { a += good[s * n + t]; b += good[s * n + t] * asks[t]; u += random[s * n + t]; v += random[s * n + t] * asks[t]; }
      reach[s] = a / n; reach[n + s] = b / sum; reach[2 * n + s] = u / n; reach[3 * n + s] = v / sum;
    }
  };
  return { at, c, states, reach, seen: diff };
};

// ξ [count, 4, D] at any σ∥, σ⊥ and flip probabilities
export const features = (split, heads, noise, from = 0, to = split.done) => {
  const { T } = split, n = T + 1, D = DIM + n, size = DIM * T, { sigmaPerp } = noise;
  const { at, c, reach } = attend(split, heads, noise), xi = new Float64Array((to - from) * 4 * D), flat = new Float64Array(8);
  for (let e = from; e < to; e += 1) {
    at(e);
    const out = (e - from) * 4 * D;
    flat.fill(0);
    for (let p = 0; p < 4; p += 1) {
      for (let s = 1; s < n; s += 1) { flat[2 * p] += reach[p * n + s] * c[s]; flat[2 * p + 1] += reach[p * n + s] * c[n + s]; }
      for (let s = 0; s < n; s += 1) xi[out + p * D + DIM + s] = reach[p * n + s];
    }
    for (let a = 0; a < DIM; a += 1) {
      let s0 = 0, s1 = 0, s2 = 0, s3 = 0;
      for (let t = 0, row = e * size + a * T; t < T; t += 1) {
        const z = split.noise[row + t];
        s0 += reach[t + 1] * z; s1 += reach[n + t + 1] * z; s2 += reach[2 * n + t + 1] * z; s3 += reach[3 * n + t + 1] * z;
      }
      const h = a < HALF ? 0 : 1;
      xi[out + a] = flat[h] + sigmaPerp * s0;
      xi[out + D + a] = flat[2 + h] + sigmaPerp * s1;
      xi[out + 2 * D + a] = flat[4 + h] + sigmaPerp * s2;
      xi[out + 3 * D + a] = flat[6 + h] + sigmaPerp * s3;
    }
  }
  return xi;
};

// seeds of training data, test data and the random head of each layer
const PAPER = [27, 59, 147, 247];
export const taskSeeds = (seed) => (seed === 'paper' ? PAPER : seedWords(seed, 4));
