// All weights of a network of width N: gradient descent and Langevin dynamics on
// ‖f − Y‖²/(2𝒯) + ‖Θ‖²/2 (densities.AllWeights), with the tokens contracted into ξ beforehand.
import { heap } from './kernels.js';

const up = (n) => Math.ceil(n / 4) * 4;

export const network = (xi, y, width, temperature, generator, options) => {
  const P = y.length, Pp = up(P), N = up(width), D = xi.length / (4 * P), Dp = up(D), F = 4 * Dp;
  let top = 0;
  const place = (size) => (top += size + (size & 1)) - size - (size & 1);
  const sizes = [F * Pp, F * Pp, N * Dp, 4 * N * N, N, N * Dp, 4 * N * N, N, 4 * Dp, 4 * N, 4 * Dp, 4 * N, 2 * N, 2 * N, Pp, Pp, N * Dp, 4 * N];
  const [X, XT, V0, V, A, dV0, dV, dA, PER, VEFF, dPER, dVEFF, MID, dMID, OUT, RES, TURN, TURNED] = sizes.map(place);
  const h = heap(top, options), { at } = h, scale = 1 / Math.sqrt(4 * D * width ** 3);
  for (let i = 0; i < P; i += 1) {
    for (let p = 0; p < 4; p += 1) {
      for (let d = 0; d < D; d += 1) {
        const x = xi[(i * 4 + p) * D + d] * scale;
        at[X + i * F + p * Dp + d] = x;
        at[XT + (p * Dp + d) * Pp + i] = x;
      }
    }
  }
  // V [layer, head, N, N]; weights in use, as ranges of the heap
  const ranges = [];
  for (let i = 0; i < width; i += 1) ranges.push([V0 + i * Dp, D]);
  for (let b = 0; b < 4; b += 1) for (let i = 0; i < width; i += 1) ranges.push([V + b * N * N + i * N, width]);
  ranges.push([A, width]);
  // one normal number for each weight
  const noise = new Float64Array(ranges.reduce((sum, [, length]) => sum + length, 0));
  generator.normal(noise);
  for (let r = 0, k = 0; r < ranges.length; k += ranges[r][1], r += 1) at.set(noise.subarray(k, k + ranges[r][1]), ranges[r][0]);
  const block = (base, layer, head) => base + (2 * layer + head) * N * N;
  // row of length N times matrix
  const rowTimes = (row, M, out) => {
    at.fill(0, out, out + N);
    for (let i = 0; i < width; i += 1) for (let j = 0, w = at[row + i], m = M + i * N; j < width; j += 1) at[out + j] += w * at[m + j];
  };
  const evaluate = () => {
    for (let k = 0; k < 2; k += 1) rowTimes(A, block(V, 1, k), MID + k * N);
    for (let k = 0; k < 2; k += 1) for (let g = 0; g < 2; g += 1) rowTimes(MID + k * N, block(V, 0, g), VEFF + (2 * g + k) * N);
    h.gemm(VEFF, 4, N, V0, Dp, PER);
    h.gemv(X, F, Pp, F, PER, OUT);
    let loss = 0;
    for (let i = 0; i < P; i += 1) { at[RES + i] = (at[OUT + i] - y[i]) / temperature; loss += (at[OUT + i] - y[i]) ** 2; }
    h.gemv(XT, Pp, F, Pp, RES, dPER);
    // V⁰: outer products; V_eff: products with V⁰
    for (let p = 0; p < 4; p += 1) for (let i = 0; i < width; i += 1) at[TURNED + i * 4 + p] = at[VEFF + p * N + i];
    h.gemm(TURNED, N, 4, dPER, Dp, dV0);
    for (let p = 0; p < 4; p += 1) h.gemv(V0, Dp, N, Dp, dPER + p * Dp, dVEFF + p * N);
    at.fill(0, dMID, dMID + 2 * N);
    for (let g = 0; g < 2; g += 1) {
      for (let k = 0; k < 2; k += 1) h.gemv(block(V, 0, g), N, N, N, dVEFF + (2 * g + k) * N, TURN + (2 * g + k) * N);
      for (let i = 0; i < width; i += 1) {
        const a = at[MID + i], b = at[MID + N + i], to = block(dV, 0, g) + i * N, x = dVEFF + 2 * g * N;
        for (let j = 0; j < width; j += 1) at[to + j] = a * at[x + j] + b * at[x + N + j];
      }
    }
    for (let i = 0; i < 2 * N; i += 1) at[dMID + i] = at[TURN + i] + at[TURN + 2 * N + i];
    at.fill(0, dA, dA + N);
    for (let k = 0; k < 2; k += 1) {
      h.gemv(block(V, 1, k), N, N, N, dMID + k * N, TURN);
      for (let i = 0; i < width; i += 1) {
        at[dA + i] += at[TURN + i];
        for (let j = 0, a = at[A + i], to = block(dV, 1, k) + i * N; j < width; j += 1) at[to + j] = a * at[dMID + k * N + j];
      }
    }
    return loss / P;
  };
  const shift = dV0 - V0;
  // kinetic Langevin (BAOAB): momenta p, step e, friction c; no noise if not `hot`. Gives the loss, and
  // the part of all energy that came or went without friction or noise: none, in short steps.
  const momenta = new Float64Array(shift);
  let loss = evaluate();
  const step = (e, friction, hot = true) => {
    let k = 0, kinetic = 0, prior = 0, gone = (-loss * P) / (2 * temperature);
    if (hot) generator.normal(noise);
    const keep = Math.exp(-friction * e), kick = hot ? Math.sqrt(1 - keep * keep) : 0;
    for (const [start, length] of ranges) {
      for (let i = start; i < start + length; i += 1, k += 1) {
        let p = momenta[i - V0] - (e / 2) * (at[i + shift] + at[i]);
        gone += (p * p - momenta[i - V0] ** 2 - at[i] ** 2) / 2;
        at[i] += (e / 2) * p;
        p = keep * p + kick * noise[k];
        gone -= (p * p) / 2;
        at[i] += (e / 2) * p;
        momenta[i - V0] = p;
      }
    }
    loss = evaluate();
    for (const [start, length] of ranges) {
      for (let i = start; i < start + length; i += 1) {
        const p = (momenta[i - V0] -= (e / 2) * (at[i + shift] + at[i]));
        kinetic += (p * p) / 2;
        prior += at[i] ** 2 / 2;
      }
    }
    const energy = (loss * P) / (2 * temperature) + prior + kinetic;
    return { loss, drift: (energy + gone) / energy };
  };
  // U = V_eff V_effᵀ/N
  const order = () => {
    const u = [];
    for (let p = 0; p < 4; p += 1) for (let q = 0; q <= p; q += 1) { let sum = 0; for (let i = 0; i < width; i += 1) sum += at[VEFF + p * N + i] * at[VEFF + q * N + i]; u.push(sum / width ** 3); }
    return u;
  };
  // weights and momenta, and back to them
  const save = () => [at.slice(V0, dV0), momenta.slice()];
  const restore = ([weights, p]) => { at.set(weights, V0); momenta.set(p); loss = evaluate(); };
  return { loss, step, order, save, restore };
};
