// The theory: U by Newton's method, a curve over widths, and what U predicts.
import { assemble, gpLimit, move, pairs, pull, smallHessian, unknowns } from './factors.js';
import { heap } from './kernels.js';
import { dot, eigh } from './linalg.js';
import { minimise } from './minimise.js';

export const solve = (data, { heads, width, temperature, start, hessian }) => {
  const n = unknowns(heads), origin = new Float64Array(n);
  if (width === Infinity) return finish(data, gpLimit(heads), { evaluations: 0, hessians: 0, gradientNorm: 0 });
  const objective = (B) => {
    const { levels, entropy } = assemble(B);
    const { value, gradient, fit } = data.energy(pairs(levels[levels.length - 1]), temperature);
    const g = gradient.map((x) => x / width);
    return { value: entropy + value / width, gradient: pull(B, origin, g, true), scale: 1 + (data.P + Math.abs(fit)) / width };
  };
  const curvature = (B) => {
    const { levels } = assemble(B);
    const { gradient, v } = data.energy(pairs(levels[levels.length - 1]), temperature);
    const H = smallHessian(B, n, gradient.map((x) => x / width)), E = data.energyHessian(v);
    const m = gradient.length, unit = new Float64Array(m);
    const J = Array.from({ length: m }, (_, k) => { unit.fill(0); unit[k] = 1; return pull(B, origin, unit, false); });
    for (let k = 0; k < m; k += 1) {
      for (let l = 0; l < m; l += 1) {
        const e = E[k * m + l] / width;
        for (let i = 0; i < n; i += 1) for (let j = 0; j < n; j += 1) H[i * n + j] += e * J[k][i] * J[l][j];
      }
    }
    return H;
  };
  const first = gpLimit(heads);
  const end = minimise({
    objective, curvature, move,
    point: start ?? first,
    hessian: hessian ?? smallHessian(first, n, new Float64Array((data.paths * (data.paths + 1)) / 2)),
  });
  return finish(data, end.point, end);
};

const finish = (data, B, end) => {
  const { levels } = assemble(B), A = levels[levels.length - 1], u = pairs(A);
  const n = data.paths, U = Array.from({ length: n }, (_, i) => Array.from({ length: n }, (__, j) => dot(A, i * n, A, j * n, n)));
  return { U, u, ...end, point: B, rough: !(end.gradientNorm <= 1e-8 * (end.scale ?? 1)) };
};

// One solution after another from wide to narrow, each started where the last two point; pauses
// after each, and gives them all at the end.
export const sweep = function* sweep(data, { heads, widths, temperature }) {
  const order = widths.map((_, i) => i).sort((i, j) => widths[j] - widths[i]);
  const found = [], ends = [], loads = [];
  for (const i of order) {
    loads.push(Math.log1p(data.P / widths[i]));
    const last = ends[ends.length - 1];
    let start = last?.point;
    if (ends.length > 1) {
      const [x0, x1, x2] = loads.slice(-3), reach = x1 === x0 ? 0 : (x2 - x1) / (x1 - x0);
      start = last.point.map((b, l) => {
        const old = ends[ends.length - 2].point[l], size = Math.sqrt(b.length);
        return b.map((x, k) => (k % (size + 1) ? x + reach * (x - old[k]) : x * (x / old[k]) ** reach));
      });
    }
    const options = { heads, width: widths[i], temperature };
    let end = solve(data, { ...options, start, hessian: last?.hessian });
    if (end.rough) end = solve(data, options);
    found[i] = end;
    ends.push(end);
    yield null;
  }
  return found;
};

// readout weights [Π D] of the mean predictor: f(ξ) = ξ · readout
export const readout = (data, u, temperature) => {
  const { P, D, paths, xi } = data, out = new Float64Array(paths * D);
  const v = data.regress(u, temperature), sum = new Float64Array(paths * D);
  for (let i = 0; i < P; i += 1) for (let k = 0, row = i * paths * D; k < paths * D; k += 1) sum[k] += v[i] * xi[row + k];
  for (let p = 0; p < paths; p += 1) {
    for (let q = 0; q < paths; q += 1) {
      const [i, j] = p > q ? [p, q] : [q, p], weight = u[(i * (i + 1)) / 2 + j] / (paths * D);
      for (let d = 0; d < D; d += 1) out[p * D + d] += weight * sum[q * D + d];
    }
  }
  return out;
};

// `count` vectors of an even length, to be filled in, and their products with one weight vector
export const outputs = (count, size, options) => {
  const rows = Math.ceil(count / 4) * 4, h = heap((rows + 1) * size + rows, options), [X, Y] = [rows * size, (rows + 1) * size];
  return {
    xi: h.at.subarray(0, count * size),
    means: (weights) => { h.at.set(weights, X); h.gemv(0, size, rows, size, X, Y); return h.at.slice(Y, Y + count); },
  };
};

// variance of the output: k(x, x) − kᵀ(K + 𝒯)⁻¹k; xi [tests, Π, D] must have the paths of the data
export const variances = (data, u, temperature, xi) => {
  const { P, D, paths } = data, n = paths * D, count = xi.length / n;
  const weigh = (from, row) => {
    const out = new Float64Array(n);
    for (let p = 0; p < paths; p += 1) {
      for (let q = 0; q < paths; q += 1) {
        const [i, j] = p > q ? [p, q] : [q, p], weight = u[(i * (i + 1)) / 2 + j] / n;
        for (let d = 0; d < D; d += 1) out[p * D + d] += weight * from[row + q * D + d];
      }
    }
    return out;
  };
  const rows = new Float64Array(count * P), own = new Float64Array(count);
  for (let i = 0; i < count; i += 1) {
    const weighed = weigh(xi, i * n);
    own[i] = dot(weighed, 0, xi, i * n, n);
    for (let j = 0; j < P; j += 1) rows[i * P + j] = dot(weighed, 0, data.xi, j * n, n);
  }
  const explained = data.explained(u, temperature, rows);
  return own.map((x, i) => x - explained[i]);
};

export const accuracy = (mean, y) => mean.reduce((hits, f, i) => hits + (Math.sign(f) === y[i]), 0) / y.length;

// overlaps of the kernel's principal components with the labels, largest eigenvalue first
export const alignment = (data, u, count = 10) => {
  const { P, y } = data, { vectors } = eigh(data.kernel(u), P), length = Math.sqrt(dot(y, 0, y, 0, P));
  return Array.from({ length: Math.min(count, P) }, (_, i) => Math.abs(dot(vectors, (P - 1 - i) * P, y, 0, P)) / length);
};

// The bargain along one entry of U, with all others and the inner levels held: entropy and energy in
// units of N/2 S, from their values at U, and their slopes; `t` is added to the entry, and stays
// inside of where U is positive. The energy is evaluated at some values, and followed between them by its slopes.
export const bargain = (data, { width, temperature, point, u }, [p, q], count = 28) => {
  const n = data.paths, { levels } = assemble(point), above = levels[levels.length - 2], m = Math.sqrt(above.length);
  const symmetric = (A, size) => Float64Array.from({ length: size * size }, (_, k) => dot(A, Math.floor(k / size) * size, A, (k % size) * size, size));
  const Q = inverse(symmetric(levels[levels.length - 1], n), n), W = inverse(symmetric(above, m), m);
  const own = Q[p * n + p], other = Q[q * n + q], cross = Q[p * n + q], root = Math.sqrt(own * other);
  const pull = (p === q ? 1 : 2) * (Math.floor(p / m) === Math.floor(q / m) ? W[(p % m) * m + (q % m)] : 0);
  const k = p > q ? (p * (p + 1)) / 2 + q : (q * (q + 1)) / 2 + p;
  const low = p === q ? -0.97 / own : -0.97 / (root + cross), high = p === q ? 1.5 * Math.abs(u[k]) : 0.97 / (root - cross);
  const change = (t) => (p === q ? 1 + t * own : (1 + t * cross) ** 2 - t * t * own * other);
  const steep = (t) => (p === q ? own : 2 * cross * (1 + t * cross) - 2 * t * own * other);
  const t = [0, ...Array.from({ length: count }, (_, i) => low + ((high - low) * i) / (count - 1))].sort((a, b) => a - b).filter((x, i, all) => x !== all[i - 1]);
  const moved = t.map((x) => u.map((v, i) => (i === k ? v + x : v))), found = moved.map((each) => data.energy(each, temperature));
  const here = found[t.indexOf(0)].value, energy = found.map(({ value }) => (value - here) / 2), slope = found.map(({ gradient }) => gradient[k] / 2);
  const fine = t.flatMap((x, i) => (i ? [1, 2, 3, 4].map((j) => [i, j / 4]) : [[1, 0]])), weigh = (f) => fine.map(([i, s]) => f(i, s, t[i] - t[i - 1]));
  const at = weigh((i, s) => t[i - 1] + s * (t[i] - t[i - 1]));
  return {
    t: at, at: u[k], moved, known: t,
    entropy: at.map((x) => (width / 2) * (x * pull - Math.log(change(x)))),
    energy: weigh((i, s, h) => (1 + 2 * s) * (1 - s) ** 2 * energy[i - 1] + s * s * (3 - 2 * s) * energy[i] + h * s * (1 - s) * ((1 - s) * slope[i - 1] - s * slope[i])),
    slopes: [at.map((x) => (width / 2) * (pull - steep(x) / change(x))), weigh((i, s, h) => (6 * s * (1 - s) * (energy[i] - energy[i - 1])) / h + (1 - s) * (1 - 3 * s) * slope[i - 1] + s * (3 * s - 2) * slope[i])],
  };
};

const inverse = (matrix, n) => {
  const { values, vectors } = eigh(matrix, n), out = new Float64Array(n * n);
  for (let k = 0; k < n; k += 1) for (let i = 0; i < n; i += 1) for (let j = 0; j < n; j += 1) out[i * n + j] += (vectors[k * n + i] * vectors[k * n + j]) / values[k];
  return out;
};
