// The factor form: U = AAᵀ by A_ℓ = (I ⊗ A_{ℓ+1}) B_ℓ with lower triangular B_ℓ, a small deep linear
// network; its entropy, and derivatives in steps that change the B_ℓ by factors.
import { dot } from './linalg.js';

export const levelSizes = (heads) => [...heads, 1].map((_, i) => heads.slice(heads.length - i).reduce((a, b) => a * b, 1));
export const unknowns = (heads) => levelSizes(heads).reduce((sum, n) => sum + (n * (n + 1)) / 2, 0);

export const gpLimit = (heads) => levelSizes(heads).map((n) => {
  const b = new Float64Array(n * n);
  for (let i = 0; i < n; i += 1) b[i * n + i] = 1;
  return b;
});

// B_ℓ times the triangular matrix that the step stands for: logarithms of the diagonal, then the rest
export const move = (B, step) => {
  let start = 0;
  return B.map((b) => {
    const n = Math.sqrt(b.length), out = new Float64Array(n * n);
    for (let j = 0, k = start + n; j < n; j += 1) {
      // row j of the step: entries 0 … j
      for (let c = 0; c <= j; c += 1) {
        const e = c === j ? Math.exp(step[start + j]) : step[k + c];
        for (let i = j; i < n; i += 1) out[i * n + c] += b[i * n + j] * e;
      }
      k += j;
    }
    start += (n * (n + 1)) / 2;
    return out;
  });
};

// the A_ℓ = (I ⊗ A_{ℓ+1}) B_ℓ of all levels and the entropy
export const assemble = (B) => {
  let A = new Float64Array([1]), inner = 1, entropy = 0;
  const levels = B.map((b) => {
    const n = Math.sqrt(b.length), next = new Float64Array(n * n);
    for (let i = 0; i < n; i += 1) entropy -= 2 * Math.log(b[i * n + i]);
    for (const x of b) entropy += x * x;
    for (let i = 0; i < n; i += 1) {
      const block = i - (i % inner);
      for (let k = 0; k < inner; k += 1) {
        const a = A[(i % inner) * inner + k];
        for (let j = 0; j < n; j += 1) next[i * n + j] += a * b[(block + k) * n + j];
      }
    }
    [A, inner] = [next, n];
    return next;
  });
  return { levels, entropy };
};

// entries of AAᵀ on and below the diagonal
export const pairs = (A) => {
  const n = Math.sqrt(A.length), u = new Float64Array((n * (n + 1)) / 2);
  for (let i = 0, k = 0; i < n; i += 1) for (let j = 0; j <= i; j += 1, k += 1) u[k] = dot(A, i * n, A, j * n, n);
  return u;
};

// gradient in B_ℓ of Σ g_k u_k + (entropy if asked)
export const backward = (B, levels, g, entropy) => {
  let n = Math.sqrt(B[B.length - 1].length), bar = new Float64Array(n * n);
  const last = levels[levels.length - 1], result = [];
  for (let i = 0, k = 0; i < n; i += 1) {
    for (let j = 0; j <= i; j += 1, k += 1) {
      for (let c = 0; c < n; c += 1) {
        bar[i * n + c] += g[k] * last[j * n + c];
        bar[j * n + c] += g[k] * last[i * n + c];
      }
    }
  }
  for (let l = B.length - 1; l >= 0; l -= 1) {
    const b = B[l], A = l ? levels[l - 1] : new Float64Array([1]), inner = Math.sqrt(A.length);
    const out = new Float64Array(n * n), up = new Float64Array(inner * inner);
    for (let i = 0; i < n; i += 1) {
      const block = i - (i % inner), r = i % inner;
      for (let k = 0; k < inner; k += 1) {
        for (let c = 0; c < n; c += 1) out[(block + k) * n + c] += A[r * inner + k] * bar[i * n + c];
        up[r * inner + k] += dot(bar, i * n, b, (block + k) * n, n);
      }
    }
    if (entropy) {
      for (let i = 0; i < n * n; i += 1) out[i] += 2 * b[i];
      for (let i = 0; i < n; i += 1) out[i * n + i] -= 2 / b[i * n + i];
    }
    result[l] = out;
    [bar, n] = [up, inner];
  }
  return result;
};

// gradient of the same at move(B, step), in the step
export const pull = (B, step, g, entropy) => {
  const moved = move(B, step), bars = backward(moved, assemble(moved).levels, g, entropy);
  const out = new Float64Array(step.length);
  let start = 0;
  B.forEach((b, l) => {
    const n = Math.sqrt(b.length);
    for (let j = 0, k = start + n; j < n; j += 1) {
      for (let c = 0; c <= j; c += 1) {
        let sum = 0;
        for (let i = j; i < n; i += 1) sum += b[i * n + j] * bars[l][i * n + c];
        if (c === j) out[start + j] = sum * Math.exp(step[start + j]);
        else out[k + c] = sum;
      }
      k += j;
    }
    start += (n * (n + 1)) / 2;
  });
  return out;
};

// its second derivative at step = 0, by differences of the exact gradient: steers, decides nothing
export const smallHessian = (B, n, g) => {
  const h = 1e-5, H = new Float64Array(n * n), step = new Float64Array(n);
  for (let i = 0; i < n; i += 1) {
    step[i] = h;
    const up = pull(B, step, g, true);
    step[i] = -h;
    const down = pull(B, step, g, true);
    step[i] = 0;
    for (let j = 0; j < n; j += 1) H[i * n + j] = (up[j] - down[j]) / (2 * h);
  }
  return H;
};
