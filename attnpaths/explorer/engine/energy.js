// The energy ln det(K + 𝒯) + Yᵀ(K + 𝒯)⁻¹Y of K = Σ u_k S_k, one S for each pair of paths on and below
// the diagonal of U, with gradient and Hessian in u: all work is gemm and gemv in one heap.
import { heap } from './kernels.js';

// xi [P, Π, D]
export const prepare = (xi, y, paths, { plain = false } = {}) => {
  const count = y.length, D = xi.length / (count * paths), M = (paths * (paths + 1)) / 2;
  // examples and dimensions filled up with zeros: kernels do not change, ln det does by a constant
  const P = Math.ceil(count / 4) * 4, extra = P - count, square = P * P, rows = Math.ceil(M / 4) * 4;
  let top = 0;
  const place = (size) => { top += size + (size & 1); return top - size - (size & 1); };
  // gemv reads whole groups of four rows, up to three beyond the last
  const [STORED, PRODUCTS, FACTOR, COLUMNS] = [rows * square, rows * square, 4 * square + 4 * P, square + 4 * P].map(place);
  const [WHITE, INVERSE, X, Y, U, A, B] = [square, square, P + 8, P + rows + 8, 4 * M, P * D, P * D].map(place);
  const h = heap(top, { plain }), { at } = h;
  // kernels of all pairs: ξ^π [P, D] times the transpose of ξ^π'
  const C = INVERSE, scale = 1 / (paths * D);
  for (let p = 0, k = 0; p < paths; p += 1) {
    for (let i = 0; i < count; i += 1) at.set(xi.subarray((i * paths + p) * D, (i * paths + p + 1) * D), A + i * D);
    for (let q = 0; q <= p; q += 1, k += 1) {
      for (let i = 0; i < count; i += 1) for (let d = 0, row = (i * paths + q) * D; d < D; d += 1) at[B + d * P + i] = xi[row + d];
      h.gemm(A, P, D, B, P, C);
      for (let i = 0, S = STORED + k * square; i < P; i += 1) {
        for (let j = 0; j < P; j += 1) at[S + i * P + j] = scale * (p === q ? at[C + i * P + j] : at[C + i * P + j] + at[C + j * P + i]);
      }
    }
  }
  const mixed = (u) => {
    at.set(u, U);
    h.gemm(U, 4, M, STORED, square, FACTOR);
  };
  const even = (k) => k + (k & 1);
  // K + 𝒯 = LLᵀ, column by column
  const factorise = (u, temperature) => {
    mixed(u);
    for (let i = 0; i < P; i += 1) at[FACTOR + i * P + i] += temperature;
    for (let j = 0; j < P; j += 1) {
      at.copyWithin(X, FACTOR + j * P, FACTOR + j * P + j);
      at[X + j] = 0;
      h.gemv(FACTOR + j * P, P, P - j, even(j), X, Y);
      const d = at[FACTOR + j * P + j] - at[Y];
      if (!(d > 0)) return false;
      const root = Math.sqrt(d);
      at[FACTOR + j * P + j] = root;
      for (let i = j + 1; i < P; i += 1) at[FACTOR + i * P + j] = (at[FACTOR + i * P + j] - at[Y + i - j]) / root;
    }
    return true;
  };
  // (LLᵀ)⁻¹ y
  const solveFor = (b) => {
    const v = new Float64Array(P);
    v.set(b);
    for (let i = 0; i < P; i += 1) { for (let j = 0, row = FACTOR + i * P; j < i; j += 1) v[i] -= at[row + j] * v[j]; v[i] /= at[FACTOR + i * P + i]; }
    for (let i = P - 1; i >= 0; i -= 1) { v[i] /= at[FACTOR + i * P + i]; for (let j = 0, row = FACTOR + i * P; j < i; j += 1) v[j] -= at[row + j] * v[i]; }
    return v;
  };
  // L⁻ᵀL⁻¹, four rows at a time: of row i of L⁻ᵀ the first i numbers are zero
  const invert = () => {
    for (let i = 0; i < P; i += 4) {
      const left = P - i;
      for (let r = 0; r < 4; r += 1) at.copyWithin(A + r * left, COLUMNS + (i + r) * P + i, COLUMNS + (i + r) * P + P);
      h.gemm(A, 4, left, WHITE + i * P, P, INVERSE + i * P);
    }
  };
  const energy = (u, temperature) => {
    if (!factorise(u, temperature)) return { value: NaN, gradient: new Float64Array(M), fit: NaN };
    let value = -extra * Math.log(temperature), fit = 0;
    for (let i = 0; i < P; i += 1) value += 2 * Math.log(at[FACTOR + i * P + i]);
    // rows of COLUMNS are the columns of L⁻¹
    for (let k = 0; k < P; k += 1) {
      const d = at[FACTOR + k * P + k];
      at.copyWithin(X, FACTOR + k * P, FACTOR + k * P + k);
      at[X + k] = 0;
      if (k) h.gemv(COLUMNS, P, k, even(k), X, Y);
      for (let i = 0; i < k; i += 1) at[COLUMNS + i * P + k] = -at[Y + i] / d;
      at[COLUMNS + k * P + k] = 1 / d;
    }
    for (let i = 0; i < P; i += 1) for (let j = i; j < P; j += 1) at[WHITE + j * P + i] = at[COLUMNS + i * P + j];
    invert();
    const v = solveFor(y);
    for (let i = 0; i < count; i += 1) fit += y[i] * v[i];
    for (let i = 0; i < P; i += 1) for (let j = 0, row = INVERSE + i * P, x = v[i]; j < P; j += 1) at[row + j] -= x * v[j];
    h.gemv(STORED, square, rows, square, INVERSE, Y);
    return { value: value + fit, gradient: at.slice(Y, Y + M), fit, v };
  };
  // second derivative where `energy` was last evaluated: −tr(R S_k R S_l) + 2 vᵀS_k R S_l v, R = (K + 𝒯)⁻¹
  const energyHessian = (v) => {
    const H = new Float64Array(M * M), seen = [], solved = [];
    const times = (matrix) => Float64Array.from(v, (_, i) => { let sum = 0; for (let j = 0, row = matrix + i * P; j < P; j += 1) sum += at[row + j] * v[j]; return sum; });
    invert();
    for (let k = 0; k < M; k += 1) {
      h.gemm(INVERSE, P, P, STORED + k * square, P, PRODUCTS + k * square);
      seen.push(times(STORED + k * square));
      solved.push(times(PRODUCTS + k * square));
    }
    for (let l = 0; l < M; l += 1) {
      for (let i = 0, from = PRODUCTS + l * square; i < P; i += 1) for (let j = 0; j < P; j += 1) at[FACTOR + j * P + i] = at[from + i * P + j];
      h.gemv(PRODUCTS, square, rows, square, FACTOR, Y);
      for (let k = 0; k < M; k += 1) H[k * M + l] = 2 * seen[k].reduce((sum, x, i) => sum + x * solved[l][i], 0) - at[Y + k];
    }
    return H;
  };
  // the first `count` rows and columns of a matrix
  const cut = (from, factor = 1) => {
    const out = new Float64Array(count * count);
    for (let i = 0; i < count; i += 1) for (let j = 0; j < count; j += 1) out[i * count + j] = factor * at[from + i * P + j];
    return out;
  };
  const kernel = (u) => { mixed(u); return cut(FACTOR); };
  // the symmetric part of C^{ππ'}
  const pairKernel = (p, q) => cut(STORED + (p * (p + 1) / 2 + q) * square, p === q ? paths : paths / 2);
  const regress = (u, temperature) => { factorise(u, temperature); return solveFor(y).subarray(0, count); };
  // kᵀ(K + 𝒯)⁻¹k for each row k [count] of `rows`
  const explained = (u, temperature, rows) => {
    factorise(u, temperature);
    return Float64Array.from({ length: rows.length / count }, (_, r) => {
      const x = rows.slice(r * count, (r + 1) * count);
      let sum = 0;
      for (let i = 0; i < count; i += 1) {
        for (let j = 0, row = FACTOR + i * P; j < i; j += 1) x[i] -= at[row + j] * x[j];
        x[i] /= at[FACTOR + i * P + i];
        sum += x[i] * x[i];
      }
      return sum;
    });
  };
  return { xi, y, P: count, D, paths, energy, energyHessian, kernel, pairKernel, regress, explained };
};
