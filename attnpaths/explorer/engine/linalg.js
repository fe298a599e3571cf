// Dense linear algebra on Float64Array, row-major. All inner loops run along rows.

export const dot = (a, i, b, j, n) => {
  let s0 = 0, s1 = 0, s2 = 0, s3 = 0, k = 0;
  for (; k + 3 < n; k += 4) {
    s0 += a[i + k] * b[j + k];
    s1 += a[i + k + 1] * b[j + k + 1];
    s2 += a[i + k + 2] * b[j + k + 2];
    s3 += a[i + k + 3] * b[j + k + 3];
  }
  for (; k < n; k += 1) s0 += a[i + k] * b[j + k];
  return (s0 + s1) + (s2 + s3);
};

// lower Cholesky factor of the lower triangle of a, in place; false if there is none
export const cholesky = (a, n) => {
  for (let i = 0; i < n; i += 1) {
    const row = i * n;
    for (let j = 0; j < i; j += 1) a[row + j] = (a[row + j] - dot(a, row, a, j * n, j)) / a[j * n + j];
    const d = a[row + i] - dot(a, row, a, row, i);
    if (!(d > 0)) return false;
    a[row + i] = Math.sqrt(d);
  }
  return true;
};

// Combines the rows of [x | y] by an orthogonal matrix into as many as x spans, large ones first
// (Householder's QR with the longest column next), so that rounding in large directions stays out of
// small ones. What y has in directions that x does not reach is left out.
export const fewerRows = (x, y) => {
  const P = y.length, n = x.length / P, v = new Float64Array(P), along = new Float64Array(n), sizes = new Float64Array(n);
  [x, y] = [x.slice(), y.slice()];
  for (let i = 0; i < P; i += 1) for (let j = 0; j < n; j += 1) sizes[j] += x[i * n + j] ** 2;
  const hidden = (2.2e-16 * n) ** 2 * sizes.reduce((sum, size) => sum + size, 0);
  let k = 0;
  for (; k < P; k += 1) {
    const next = sizes.indexOf(Math.max(...sizes));
    if (!(sizes[next] > hidden)) break;
    // v = column − its image, which is zero below row k
    for (let i = k; i < P; i += 1) v[i] = x[i * n + next];
    const length = Math.sqrt(dot(v, k, v, k, P - k));
    v[k] += v[k] > 0 ? length : -length;
    const beta = 2 / dot(v, k, v, k, P - k), turn = beta * dot(v, k, y, k, P - k);
    along.fill(0);
    sizes.fill(0);
    for (let i = k; i < P; i += 1) for (let j = 0, w = beta * v[i], row = i * n; j < n; j += 1) along[j] += w * x[row + j];
    for (let i = k; i < P; i += 1) {
      y[i] -= turn * v[i];
      for (let j = 0, w = v[i], row = i * n; j < n; j += 1) {
        const moved = (x[row + j] -= w * along[j]);
        if (i > k) sizes[j] += moved * moved;
      }
    }
  }
  return [x.subarray(0, k * n), y.subarray(0, k)];
};

// Eigenvalues, ascending, and vectors (the rows of `vectors`) of a symmetric matrix: Householder
// to tridiagonal form, then implicit QL. The vectors are kept as rows, so that both loops are.
export const eigh = (matrix, n) => {
  const a = Float64Array.from(matrix), d = new Float64Array(n), e = new Float64Array(n);
  const q = new Float64Array(n * n);
  for (let i = 0; i < n; i += 1) q[i * n + i] = 1;
  const v = new Float64Array(n), p = new Float64Array(n);
  for (let k = 0; k < n - 2; k += 1) {
    let norm = 0;
    for (let i = k + 1; i < n; i += 1) norm += a[i * n + k] ** 2;
    norm = Math.sqrt(norm);
    if (norm === 0) continue;
    const alpha = a[(k + 1) * n + k] > 0 ? -norm : norm;
    v.fill(0);
    for (let i = k + 1; i < n; i += 1) v[i] = a[i * n + k];
    v[k + 1] -= alpha;
    const size = dot(v, k + 1, v, k + 1, n - k - 1);
    if (size === 0) continue;
    // a ← (1 − βvvᵀ) a (1 − βvvᵀ) and q ← (1 − βvvᵀ) q with β = 2/vᵀv
    const beta = 2 / size;
    for (let i = k; i < n; i += 1) p[i] = beta * dot(a, i * n + k, v, k, n - k);
    const half = (beta / 2) * dot(p, k, v, k, n - k);
    for (let i = k; i < n; i += 1) p[i] -= half * v[i];
    for (let i = k; i < n; i += 1) {
      const vi = v[i], pi = p[i], row = i * n;
      for (let j = k; j < n; j += 1) a[row + j] -= vi * p[j] + pi * v[j];
    }
    p.fill(0);
    for (let i = k + 1; i < n; i += 1) for (let j = 0, x = v[i]; j < n; j += 1) p[j] += x * q[i * n + j];
    for (let i = k + 1; i < n; i += 1) for (let j = 0, x = beta * v[i]; j < n; j += 1) q[i * n + j] -= x * p[j];
  }
  for (let i = 0; i < n; i += 1) { d[i] = a[i * n + i]; e[i] = i + 1 < n ? a[(i + 1) * n + i] : 0; }
  for (let l = 0; l < n; l += 1) {
    for (;;) {
      let m = l;
      for (; m < n - 1; m += 1) if (Math.abs(e[m]) <= 2.3e-16 * (Math.abs(d[m]) + Math.abs(d[m + 1]))) break;
      if (m === l) break;
      let g = (d[l + 1] - d[l]) / (2 * e[l]), r = Math.hypot(g, 1), s = 1, c = 1, shift = 0;
      g = d[m] - d[l] + e[l] / (g + (g < 0 ? -r : r));
      let i = m - 1;
      for (; i >= l; i -= 1) {
        const f = s * e[i], b = c * e[i];
        r = Math.hypot(f, g);
        e[i + 1] = r;
        if (r === 0) { d[i + 1] -= shift; e[m] = 0; break; }
        s = f / r;
        c = g / r;
        g = d[i + 1] - shift;
        r = (d[i] - g) * s + 2 * c * b;
        shift = s * r;
        d[i + 1] = g + shift;
        g = c * r - b;
        for (let k = 0, x = (i + 1) * n, y = i * n; k < n; k += 1) {
          const up = q[x + k], low = q[y + k];
          q[x + k] = s * low + c * up;
          q[y + k] = c * low - s * up;
        }
      }
      if (r === 0 && i >= l) continue;
      d[l] -= shift;
      e[l] = g;
      e[m] = 0;
    }
  }
  const order = [...d.keys()].sort((i, j) => d[i] - d[j]);
  const vectors = new Float64Array(n * n);
  order.forEach((from, to) => vectors.set(q.subarray(from * n, (from + 1) * n), to * n));
  return { values: Float64Array.from(order, (i) => d[i]), vectors };
};
