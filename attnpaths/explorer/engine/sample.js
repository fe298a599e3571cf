// The exact posterior of U at finite width (attnpaths.posterior), sampled by NUTS (multinomial, dense
// metric). For widths N > Π, where every factor is a square triangle.
import { assemble, backward, levelSizes, pairs } from './factors.js';
import { cholesky, dot, eigh } from './linalg.js';

// ½[ln det(K+𝒯) + Yᵀ(K+𝒯)⁻¹Y] − ln p(z), its gradient, and U
export const density = (data, heads, width, temperature) => {
  const sizes = levelSizes(heads), root = Math.sqrt(width), size = sizes.reduce((sum, n) => sum + (n * (n + 1)) / 2, 0);
  const factors = (z) => {
    let start = 0;
    return sizes.map((n) => {
      const b = new Float64Array(n * n);
      let k = start + n;
      for (let i = 0; i < n; i += 1) {
        b[i * n + i] = Math.sqrt(width - i) * Math.exp(z[start + i] / Math.sqrt(2 * (width - i))) / root;
        for (let j = 0; j < i; j += 1, k += 1) b[i * n + j] = z[k] / root;
      }
      start = k;
      return b;
    });
  };
  const evaluate = (z) => {
    const B = factors(z), { levels } = assemble(B), u = pairs(levels.at(-1));
    const { value, gradient } = data.energy(u, temperature), bars = backward(B, levels, gradient, false);
    const out = new Float64Array(size);
    let start = 0, total = value / 2;
    sizes.forEach((n, l) => {
      let k = start + n;
      for (let i = 0; i < n; i += 1) {
        const scale = Math.sqrt(2 * (width - i)), x = (2 * z[start + i]) / scale;
        total += ((width - i) * (Math.expm1(x) - x)) / 2;
        out[start + i] = (bars[l][i * n + i] * B[l][i * n + i]) / (2 * scale) + ((width - i) * Math.expm1(x)) / scale;
        for (let j = 0; j < i; j += 1, k += 1) { out[k] = bars[l][i * n + j] / (2 * root) + z[k]; total += (z[k] * z[k]) / 2; }
      }
      start = k;
    });
    return { value: Number.isFinite(total) ? total : Infinity, gradient: out, u };
  };
  // coordinates of the factors of `solve`
  const coordinates = (B) => Float64Array.from(B.flatMap((b, l) => {
    const n = sizes[l], diagonal = [], others = [];
    for (let i = 0; i < n; i += 1) {
      diagonal.push(Math.sqrt(2 * (width - i)) * Math.log((b[i * n + i] * root) / Math.sqrt(width - i)));
      for (let j = 0; j < i; j += 1) others.push(b[i * n + j] * root);
    }
    return [...diagonal, ...others];
  }));
  // the inverse of the second derivative, by differences of the gradient: a metric without warm-up
  const metric = (z) => {
    const H = new Float64Array(size * size), out = new Float64Array(size * size);
    for (let i = 0; i < size; i += 1) {
      const [a, b] = [1e-4, -1e-4].map((e) => evaluate(z.map((x, j) => (j === i ? x + e : x))).gradient);
      for (let j = 0; j < size; j += 1) { H[i * size + j] += (a[j] - b[j]) / 4e-4; H[j * size + i] += (a[j] - b[j]) / 4e-4; }
    }
    const { values, vectors } = eigh(H, size);
    for (let k = 0; k < size; k += 1) for (let i = 0; i < size; i += 1) for (let j = 0; j < size; j += 1) out[i * size + j] += (vectors[k * size + i] * vectors[k * size + j]) / Math.max(values[k], 0.3);
    return out;
  };
  return { size, evaluate, coordinates, metric };
};

// `random()` is uniform in [0, 1)
export const nuts = function* nuts({ size, evaluate }, random, { warmup = 300, accept = 0.8, start, metric: given } = {}) {
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  let metric = given ?? identity(size), factor = Float64Array.from(metric);
  cholesky(factor, size);
  let now = { z: start ?? Float64Array.from({ length: size }, normal) };
  Object.assign(now, evaluate(now.z));
  // momenta have covariance M = metric⁻¹: r = L⁻ᵀn with metric = LLᵀ
  const momentum = () => {
    const r = Float64Array.from({ length: size }, normal);
    for (let i = size - 1; i >= 0; i -= 1) { for (let j = i + 1; j < size; j += 1) r[i] -= factor[j * size + i] * r[j]; r[i] /= factor[i * size + i]; }
    return r;
  };
  const velocity = (r) => Float64Array.from(r, (_, i) => dot(metric, i * size, r, 0, size));
  const kinetic = (r) => dot(r, 0, velocity(r), 0, size) / 2;
  let step = given ? 0.5 : 0.1, logMean = Math.log(step), gap = 0, count = 0, centre = Math.log(10 * step), leapfrogs = 0;
  const leap = ({ z, r, gradient }, e) => {
    leapfrogs += 1;
    const half = r.map((x, i) => x - (e / 2) * gradient[i]), v = velocity(half), moved = z.map((x, i) => x + e * v[i]);
    const next = evaluate(moved);
    return { ...next, z: moved, r: half.map((x, i) => x - (e / 2) * next.gradient[i]) };
  };
  let window = [], edge = 100;
  for (let iteration = 0; ; iteration += 1) {
    const r = momentum(), H0 = now.value + kinetic(r);
    let left = { ...now, r }, right = left, proposal = now, logWeight = 0, rho = r, going = true, tried = 0, accepted = 0;
    const turns = (sum, a, b) => dot(sum, 0, velocity(a.r), 0, size) < 0 || dot(sum, 0, velocity(b.r), 0, size) < 0;
    const tree = (from, depth, side) => {
      if (depth === 0) {
        const end = leap(from, side * step), difference = H0 - end.value - kinetic(end.r);
        tried += 1;
        accepted += Math.min(1, Math.exp(difference)) || 0;
        return { first: end, last: end, proposal: end, logWeight: difference, rho: end.r, good: difference > -1000 };
      }
      const a = tree(from, depth - 1, side);
      if (!a.good) return a;
      const b = tree(a.last, depth - 1, side), sum = a.rho.map((x, i) => x + b.rho[i]);
      const most = Math.max(a.logWeight, b.logWeight), total = most + Math.log(Math.exp(a.logWeight - most) + Math.exp(b.logWeight - most));
      const chosen = Math.log(random()) < b.logWeight - total ? b.proposal : a.proposal;
      return { first: a.first, last: b.last, proposal: chosen, logWeight: total, rho: sum, good: b.good && !turns(sum, a.first, b.last) };
    };
    for (let depth = 0; going && depth < 10; depth += 1) {
      const side = random() < 0.5 ? -1 : 1, sub = tree(side < 0 ? left : right, depth, side);
      if (!sub.good) break;
      if (Math.log(random()) < sub.logWeight - logWeight) proposal = sub.proposal;
      const most = Math.max(logWeight, sub.logWeight);
      logWeight = most + Math.log(Math.exp(logWeight - most) + Math.exp(sub.logWeight - most));
      if (side < 0) left = sub.last; else right = sub.last;
      rho = rho.map((x, i) => x + sub.rho[i]);
      going = !turns(rho, left, right);
    }
    now = { z: proposal.z, value: proposal.value, gradient: proposal.gradient, u: proposal.u };
    if (iteration < warmup) {
      // dual averaging of the step, and a metric from ever longer windows
      count += 1;
      gap += (accept - accepted / tried - gap) / (count + 10);
      const log = centre - (Math.sqrt(count) / 0.05) * gap, weight = count ** -0.75;
      logMean = weight * log + (1 - weight) * logMean;
      step = Math.exp(log);
      if (iteration >= 30) window.push(now.z);
      if (iteration === edge && iteration < warmup - 40) {
        [metric, factor] = covariance(window, size);
        window = [];
        edge = Math.min(2 * edge, warmup - 50);
        [count, gap, centre, logMean] = [0, 0, Math.log(10 * Math.exp(logMean)), 0];
      }
      if (iteration === warmup - 1) step = Math.exp(logMean);
    }
    yield { ...now, warm: iteration >= warmup, leapfrogs, step, acceptance: accepted / tried };
  }
};

const identity = (n) => Float64Array.from({ length: n * n }, (_, i) => (i % (n + 1) ? 0 : 1));

const covariance = (draws, n) => {
  const count = draws.length, mean = new Float64Array(n), C = new Float64Array(n * n);
  for (const z of draws) z.forEach((x, i) => { mean[i] += x / count; });
  for (const z of draws) for (let i = 0; i < n; i += 1) for (let j = 0; j < n; j += 1) C[i * n + j] += ((z[i] - mean[i]) * (z[j] - mean[j])) / (count + 5);
  for (let i = 0; i < n; i += 1) C[i * n + i] += (1e-3 * 5) / (count + 5);
  const L = Float64Array.from(C);
  cholesky(L, n);
  return [C, L];
};

// effective draws of one series, by Geyer's pairs
export const effective = (x) => {
  const n = x.length, mean = x.reduce((a, b) => a + b, 0) / n, d = x.map((v) => v - mean);
  const at = (lag) => { let sum = 0; for (let i = 0; i + lag < n; i += 1) sum += d[i] * d[i + lag]; return sum / n; };
  const zero = at(0);
  let sum = -1, last = Infinity;
  for (let lag = 0; lag + 1 < n / 2; lag += 2) {
    const both = (at(lag) + at(lag + 1)) / zero;
    if (both <= 0) break;
    last = Math.min(last, both);
    sum += 2 * last;
  }
  return n / Math.max(sum, 1 / Math.log10(n));
};
