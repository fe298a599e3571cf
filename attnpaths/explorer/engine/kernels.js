// `code` is kernels.wat, which says what the functions do: 1331 bytes of WebAssembly.
const code = 'AGFzbQEAAAABDgJgBn9/f39/fwBgAX8AAwQDAAABBQMBAAAHHwQGbWVtb3J5AgAEZ2VtbQAABGdlbXYAAQRkcmF3AAIK7AkDqwQCBn8LeyACQQN0IQogBEEDdCELA0AgAyEGA0D9DAAAAAAAAAAAAAAAAAAAAAAhD/0MAAAAAAAAAAAAAAAAAAAAACEQ/QwAAAAAAAAAAAAAAAAAAAAAIRH9DAAAAAAAAAAAAAAAAAAAAAAhEv0MAAAAAAAAAAAAAAAAAAAAACET/QwAAAAAAAAAAAAAAAAAAAAAIRT9DAAAAAAAAAAAAAAAAAAAAAAhFf0MAAAAAAAAAAAAAAAAAAAAACEWIAAhCCAGIQkgAiEHA0AgCf0ABAAhDCAJ/QAEECENIAj9CgMAIQ4gDyAOIAz98gH98AEhDyAQIA4gDf3yAf3wASEQIAggCkEBbGr9CgMAIQ4gESAOIAz98gH98AEhESASIA4gDf3yAf3wASESIAggCkECbGr9CgMAIQ4gEyAOIAz98gH98AEhEyAUIA4gDf3yAf3wASEUIAggCkEDbGr9CgMAIQ4gFSAOIAz98gH98AEhFSAWIA4gDf3yAf3wASEWIAhBCGohCCAJIAtqIQkgB0F/aiIHDQALIAUgBiADa2ohByAHIA/9CwQAIAcgEP0LBBAgByALaiEHIAcgEf0LBAAgByAS/QsEECAHIAtqIQcgByAT/QsEACAHIBT9CwQQIAcgC2ohByAHIBX9CwQAIAcgFv0LBBAgByALaiEHIAZBIGoiBiADIAtqSQ0ACyAAIApBBGxqIQAgBSALQQRsaiEFIAFBfGoiAUEASg0ACwvIAgIDfwV7IAQgA0EDdGohCANA/QwAAAAAAAAAAAAAAAAAAAAAIQr9DAAAAAAAAAAAAAAAAAAAAAAhC/0MAAAAAAAAAAAAAAAAAAAAACEM/QwAAAAAAAAAAAAAAAAAAAAAIQ0gACEGIAQhBwJAIANFDQADQCAH/QAEACEJIAogBv0ABAAgCf3yAf3wASEKIAsgBiABQQFsav0ABAAgCf3yAf3wASELIAwgBiABQQJsav0ABAAgCf3yAf3wASEMIA0gBiABQQNsav0ABAAgCf3yAf3wASENIAZBEGohBiAHQRBqIgcgCEkNAAsLIAUgCv0hACAK/SEBoDkDACAFIAv9IQAgC/0hAaA5AwggBSAM/SEAIAz9IQGgOQMQIAUgDf0hACAN/SEBoDkDGCAAIAFBBGxqIQAgBUEgaiEFIAJBfGoiAkEASg0ACwvyAgIDfwJ7IAAhASAAQbQMaiECIABBwBNqIQMDQCAB/QAEAP0MAAAAgAAAAIAAAACAAAAAgP1OIAH9AAQE/Qz///9/////f////3////9//U79UCEFIAL9AAQAIAVBAf2tAf1RIAX9DAEAAAABAAAAAQAAAAEAAAD9Tv2hAf0M37AImd+wCJnfsAiZ37AImf1O/VEhBCABIAT9CwQAIAQgBEEL/a0B/VEhBCAEIARBB/2rAf0MgFYsnYBWLJ2AViydgFYsnf1O/VEhBCAEIARBD/2rAf0MAADG7wAAxu8AAMbvAADG7/1O/VEhBCABIAQgBEES/a0B/VH9CwTQEyABIABGBEAgACAA/QAEAP0LBMATCyABQRBqIQEgAkEQaiECIAEgAEGQB2pGBEAgAEEEaiECCyABIANJDQALIAAhAQNAIAFEAAAAAAAAoDwgASkD0BNCIIlC/////////w+DuqI5A5AnIAFBCGoiASADSQ0ACws=';

const compiled = (() => {
  try {
    return new WebAssembly.Module(Uint8Array.from(atob(code), (c) => c.charCodeAt(0)));
  } catch {
    return null;
  }
})();
// what computes here
export const kind = compiled ? 'WebAssembly' : 'JavaScript';

// a heap of so many numbers, with gemm and gemv that take positions in it
export const heap = (numbers, { plain = false } = {}) => {
  if (plain || !compiled) return inJavaScript(new Float64Array(numbers));
  const { memory, gemm, gemv } = new WebAssembly.Instance(compiled).exports;
  memory.grow(Math.ceil(numbers / 8192));
  return {
    at: new Float64Array(memory.buffer),
    gemm: (a, m, k, b, n, c) => gemm(8 * a, m, k, 8 * b, n, 8 * c),
    gemv: (a, stride, m, k, x, y) => gemv(8 * a, 8 * stride, m, k, 8 * x, 8 * y),
  };
};

// fills `words`, the state of a Mersenne Twister, anew and gives 312 numbers of it: in WebAssembly, or not at all
export const drawing = (state) => {
  if (!compiled) return null;
  const { memory, draw } = new WebAssembly.Instance(compiled).exports;
  memory.grow(1);
  new Uint32Array(memory.buffer).set(state);
  const numbers = new Float64Array(memory.buffer, 5008, 312);
  return () => { draw(0); return numbers; };
};

const inJavaScript = (at) => ({
  at,
  gemm: (a, m, k, b, n, c) => {
    at.fill(0, c, c + m * n);
    for (let i = 0; i < m; i += 4) {
      const c0 = c + i * n, c1 = c0 + n, c2 = c1 + n, c3 = c2 + n;
      for (let p = 0; p < k; p += 1) {
        const row = a + i * k + p, w0 = at[row], w1 = at[row + k], w2 = at[row + 2 * k], w3 = at[row + 3 * k];
        for (let j = 0, from = b + p * n; j < n; j += 1) {
          const x = at[from + j];
          at[c0 + j] += w0 * x;
          at[c1 + j] += w1 * x;
          at[c2 + j] += w2 * x;
          at[c3 + j] += w3 * x;
        }
      }
    }
  },
  gemv: (a, stride, m, k, x, y) => {
    for (let i = 0; i < m; i += 2) {
      const r = a + i * stride, q = r + stride;
      let s0 = 0, s1 = 0, t0 = 0, t1 = 0;
      for (let p = 0; p < k; p += 2) {
        s0 += at[r + p] * at[x + p];
        s1 += at[r + p + 1] * at[x + p + 1];
        t0 += at[q + p] * at[x + p];
        t1 += at[q + p + 1] * at[x + p + 1];
      }
      at[y + i] = s0 + s1;
      at[y + i + 1] = t0 + t1;
    }
  },
});
