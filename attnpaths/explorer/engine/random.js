// The streams that attnpaths.tasks.markov draws from: numpy's SeedSequence, and torch's CPU
// generator (Mersenne Twister) with torch.rand and torch.randn in float64. Uniform numbers are
// the same bits; normal ones differ by the last digit of log, cos and sin at most.
import { drawing } from './kernels.js';

export const seedWords = (seed, count) => {
  const entropy = [];
  let rest = BigInt(seed);
  do { entropy.push(Number(rest & 0xffffffffn)); rest >>= 32n; } while (rest);
  let constant = 0x43b0d7e5;
  const hash = (value) => {
    value ^= constant;
    constant = Math.imul(constant, 0x931e8875);
    value = Math.imul(value, constant);
    return value ^ (value >>> 16);
  };
  const mixed = (x, y) => {
    const value = Math.imul(0xca01f9dd, x) - Math.imul(0x4973f715, y) | 0;
    return value ^ (value >>> 16);
  };
  const pool = [0, 1, 2, 3].map((i) => hash(entropy[i] ?? 0));
  for (let i = 0; i < 4; i += 1) for (let j = 0; j < 4; j += 1) if (i !== j) pool[j] = mixed(pool[j], hash(pool[i]));
  for (let i = 4; i < entropy.length; i += 1) for (let j = 0; j < 4; j += 1) pool[j] = mixed(pool[j], hash(entropy[i]));
  let other = 0x8b51f9dd;
  return Array.from({ length: count }, (_, i) => {
    let value = pool[i % 4] ^ other;
    other = Math.imul(other, 0x58f38ded);
    value = Math.imul(value, other);
    return (value ^ (value >>> 16)) >>> 0;
  });
};

// the next 312 numbers of a state of 624 words: 53 bits of two words each, the first the higher
const drawInJavaScript = (state) => {
  const words = new Uint32Array(624), numbers = new Float64Array(312);
  return () => {
    for (let i = 0; i < 624; i += 1) {
      const y = (state[i] & 0x80000000) | (state[i === 623 ? 0 : i + 1] & 0x7fffffff);
      let x = (state[i] = state[i < 227 ? i + 397 : i - 227] ^ (y >>> 1) ^ (-(y & 1) & 0x9908b0df));
      x ^= x >>> 11;
      x ^= (x << 7) & 0x9d2c5680;
      x ^= (x << 15) & 0xefc60000;
      words[i] = x ^ (x >>> 18);
    }
    for (let i = 0; i < 312; i += 1) numbers[i] = ((words[2 * i] & 0x1fffff) * 4294967296 + words[2 * i + 1]) * 1.1102230246251565e-16;
    return numbers;
  };
};

export class Generator {
  constructor(seed, { plain = false } = {}) {
    const state = new Uint32Array(624);
    state[0] = seed;
    for (let i = 1; i < 624; i += 1) state[i] = Math.imul(1812433253, state[i - 1] ^ (state[i - 1] >>> 30)) + i;
    this.draw = (!plain && drawing(state)) || drawInJavaScript(state);
    this.rest = new Float64Array(0);
  }

  // torch.rand
  uniform(out, from = 0, to = out.length) {
    while (from < to) {
      if (!this.rest.length) this.rest = this.draw();
      const some = this.rest.subarray(0, to - from);
      out.set(some, from);
      from += some.length;
      this.rest = this.rest.subarray(some.length);
    }
    return out;
  }

  // torch.randn: Box and Muller's pairs within blocks of 16, or one pair after another if they are few
  normal(out) {
    const n = out.length;
    if (n < 16) {
      const pair = new Float64Array(2);
      for (let i = 0; i < n; i += 2) {
        const [turn, other] = this.uniform(pair), radius = Math.sqrt(-2 * Math.log1p(-other));
        out[i] = radius * Math.cos(2 * Math.PI * turn);
        if (i + 1 < n) out[i + 1] = radius * Math.sin(2 * Math.PI * turn);
      }
      return out;
    }
    this.uniform(out);
    for (let i = 0; i + 15 < n; i += 16) boxMuller(out, i);
    if (n % 16) {
      this.uniform(out, n - 16, n);
      boxMuller(out, n - 16);
    }
    return out;
  }
}

// Sine and cosine of a whole turn times u by their series, from the nearest quarter of a turn, which
// takes the time of one; a quarter's own sine and cosine are 0 or ±1.
const SINE = Float64Array.of(0, 1, 0, -1, 0), COSINE = Float64Array.of(1, 0, -1, 0, 1);
const boxMuller = (out, start) => {
  for (let i = start; i < start + 8; i += 1) {
    const radius = Math.sqrt(-2 * Math.log(1 - out[i])), u = out[i + 8], quarter = (4 * u + 0.5) | 0;
    const x = 2 * Math.PI * (u - quarter / 4), z = x * x, near = radius * COSINE[quarter], far = radius * SINE[quarter];
    const s = x - x * z * (1 / 6 - z * (1 / 120 - z * (1 / 5040 - z * (1 / 362880 - z * (1 / 39916800 - z * (1 / 6227020800 - z / 1307674368000))))));
    const c = 1 - z * (1 / 2 - z * (1 / 24 - z * (1 / 720 - z * (1 / 40320 - z * (1 / 3628800 - z * (1 / 479001600 - z / 87178291200))))));
    out[i] = near * c - far * s;
    out[i + 8] = near * s + far * c;
  }
};
