// The trust-region Newton method of attnpaths.theory, step for step.
import { dot, eigh } from './linalg.js';

const GOOD_STEP = 0.8, ROUNDING = 1e-12;
const largest = (x) => x.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
const norm = (x) => Math.sqrt(dot(x, 0, x, 0, x.length));

// the minimum of the quadratic model within the radius, and the reduction it promises
const exactStep = (hessian, gradient, radius) => {
  const n = gradient.length, { values: w, vectors: Q } = eigh(hessian, n);
  const g = w.map((_, i) => dot(Q, i * n, gradient, 0, n));
  const tiny = 1e-14 * largest(w) + 1e-300;
  const at = (shift) => g.map((x, i) => -x / (w[i] + shift));
  let shift = 0;
  if (!(w[0] > tiny && norm(at(0)) <= radius)) {
    shift = Math.max(tiny - w[0], 0, ...g.map((x, i) => Math.abs(x) / radius - w[i]));
    for (let k = 0; k < 8; k += 1) {
      const p = at(shift), length = norm(p);
      const slope = p.reduce((sum, x, i) => sum + (x * x) / (w[i] + shift), 0);
      shift += Math.max(((length ** 2 / slope) * (length - radius)) / radius, 0);
    }
  }
  const p = at(shift);
  if (w[0] < -tiny) {
    const missing = Math.sqrt(Math.max(radius ** 2 - dot(p, 0, p, 0, n), 0));
    p[0] += g[0] > 0 ? -missing : missing;
  }
  const step = new Float64Array(n);
  for (let i = 0; i < n; i += 1) for (let j = 0; j < n; j += 1) step[j] += p[i] * Q[i * n + j];
  return { step, reduction: -p.reduce((sum, x, i) => sum + g[i] * x + 0.5 * w[i] * x * x, 0) };
};

const rankOne = (hessian, step, change) => {
  const n = step.length, residual = change.map((x, i) => x - dot(hessian, i * n, step, 0, n));
  const along = dot(residual, 0, step, 0, n);
  if (!(Math.abs(along) > 1e-8 * norm(residual) * norm(step))) return;
  for (let i = 0; i < n; i += 1) for (let j = 0; j < n; j += 1) hessian[i * n + j] += (residual[i] * residual[j]) / along;
};

// objective(point) gives { value, gradient, scale }, curvature(point) the Hessian, both in the
// step that move(point, step) takes
export const minimise = ({ objective, curvature, move, point, hessian, tolerance = 1e-10, most = 1000 }) => {
  let now = objective(point), radius = 1, stale = !hessian, evaluations = 1, hessians = 0;
  hessian = hessian && Float64Array.from(hessian);
  while (Number.isFinite(now.value) && largest(now.gradient) > tolerance * now.scale && evaluations < most) {
    const exact = stale;
    if (stale) { hessian = curvature(point); hessians += 1; }
    const { step, reduction } = exactStep(hessian, now.gradient, radius);
    const moved = move(point, step), next = objective(moved), length = norm(step);
    evaluations += 1;
    const before = largest(now.gradient), after = largest(next.gradient);
    const ratio = (now.value - next.value) / reduction;
    const rounding = reduction <= ROUNDING * (now.scale + Math.abs(now.value));
    const gained = rounding ? after < before : ratio > 1e-4;
    const accepted = gained && Number.isFinite(next.value) && Number.isFinite(after);
    const doubtful = !accepted || (!rounding && ratio < 0.25);
    const bold = accepted && ratio > 0.75 && length > 0.99 * radius;
    radius = doubtful ? 0.25 * length : (bold ? 3 : 1) * radius;
    if (accepted) {
      rankOne(hessian, step, next.gradient.map((x, i) => x - now.gradient[i]));
      [point, now] = [moved, next];
      stale = after > GOOD_STEP * before;
    } else {
      if (exact && (rounding || length < 1e-14)) break;
      stale = !exact;
    }
  }
  return { ...now, point, hessian, evaluations, hessians, gradientNorm: largest(now.gradient) };
};
