// Answers to a setting, in the words of attnpaths.explorer.answers, computed where the reader is.
// Each answer is better than the last; a generator may be left at any yield, and what it has made is
// kept as long as the part of the setting that it hangs on stays.
import { prepare } from './energy.js';
import { fewerRows } from './linalg.js';
import { Generator } from './random.js';
import { density, effective, nuts } from './sample.js';
import { attend, features, labels, randomHead, startSplit, taskSeeds } from './task.js';
import { accuracy, alignment, bargain, outputs, readout, solve, sweep, variances } from './theory.js';
import { network } from './train.js';

export const WIDTHS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, Infinity];
// where the exact posterior is asked for; the factors of `sample.js` need N > Π
const EXACT = [6, 10, 20, 50, 100, 300, 1000];
const TESTS = 1000, BLOCK = 100;
// with less noise σ⊥ than this chains are much alike, and with more of them than this for each path they are
// not independent: the smallest parts of their kernels drown in the rounding of the largest, unless chains are
// combined first
const CLEAN = 0.05, MANY = 200;
// of its energy a network that learns may win or lose so much in one step by its length alone
const DRIFT = 0.02;

// the last value that `make` gave, as long as the key stays
const cached = (store, name, key, make) => {
  if (store[name]?.key !== key) store[name] = { key, value: make() };
  return store[name].value;
};
const identity = (n) => Float64Array.from({ length: (n * (n + 1)) / 2 }, (_, k) => (Number.isInteger((Math.sqrt(8 * k + 9) - 1) / 2) ? 1 : 0));

// the heads that stay, as numbers of each layer, and the paths that they make
const kept = (off) => {
  const stay = [1, 2].map((layer) => [1, 2].filter((head) => !off.includes(`${layer}.${head}`)));
  return { heads: stay.map((each) => each.length), paths: stay[0].flatMap((a) => stay[1].map((b) => 2 * (a - 1) + b - 1)) };
};

// a stretch of ξ [count, 4, D], of these paths only
const choose = (xi, count, paths) => {
  if (paths.length === 4) return xi;
  const D = xi.length / (4 * count), out = new Float64Array(count * paths.length * D);
  for (let i = 0; i < count; i += 1) paths.forEach((p, k) => out.set(xi.subarray((4 * i + p) * D, (4 * i + p + 1) * D), (i * paths.length + k) * D));
  return out;
};

export const makeEngine = (options = {}) => {
  const stores = new Map();
  // the memory of the last test set that is gone, for the next
  let spare = null;
  const take = () => { const taken = spare; spare = null; return taken; };
  const give = (store) => { spare = store.test?.value.noise ?? spare; delete store.test; };

  // what one drawn task is in a setting; nothing is computed before it is asked for
  const open = (seed, s) => {
    if (!stores.has(seed)) stores.set(seed, {});
    const store = stores.get(seed), [trainSeed, testSeed, one, two] = taskSeeds(seed), { heads, paths } = kept(s.off);
    const noise = { sigmaParallel: s.sigma_parallel, sigmaPerp: s.sigma_perp, pFlip: [s.flip_plus, s.flip_minus], uniform: s.denoising === 'uniform' };
    const combine = s.sigma_perp < CLEAN || s.examples > MANY * paths.length;
    const place = `${s.tokens}`, look = `${place} ${JSON.stringify(noise)}`, learn = `${look} ${s.examples}`, own = `${learn} ${paths}`;
    const task = {
      heads, paths, noise, own,
      random: () => cached(store, 'heads', place, () => [one, two].map((each) => randomHead(each, s.tokens, options))),
      train: () => cached(store, 'train', `${place} ${s.examples}`, () => {
        const split = startSplit(trainSeed, s.examples, s.tokens, task.random(), options);
        while (split.more(BLOCK));
        return split;
      }),
      xi: () => cached(store, 'xi', learn, () => features(task.train(), task.random(), noise)),
      chosen: () => [choose(task.xi(), s.examples, paths), task.train().y],
      // what is solved, and the kernels of the chains as they are
      data: () => cached(store, 'data', own, () => prepare(...(combine ? fewerRows(...task.chosen()) : task.chosen()), paths.length, options)),
      whole: () => (combine ? cached(store, 'whole', own, () => prepare(...task.chosen(), paths.length, options)) : task.data()),
      good: () => cached(store, 'good', learn, () => prepare(choose(task.xi(), s.examples, [0]), task.train().y, 1, options)),
      solved: () => cached(store, 'solved', `${own} ${s.temperature} ${s.width}`, () => solve(task.data(), { heads, width: s.width, temperature: s.temperature })),
      cached: (name, key, make) => cached(store, name, key, make),
      // whether all test features of this setting are there
      seen: () => store.seen?.key === look && store.seen.value.done === TESTS,
      // the test features, drawn a block at a time
      tests: function* tests() {
        const { D } = task.data(), start = () => startSplit(testSeed, TESTS, s.tokens, task.random(), options, take());
        const seen = cached(store, 'seen', look, () => ({ ...outputs(TESTS, 4 * D, options), done: 0 }));
        while (seen.done < TESTS) {
          const test = cached(store, 'test', place, start), to = Math.min(seen.done + BLOCK, TESTS);
          if (test.done < to) test.more(to - test.done);
          seen.xi.set(features(test, task.random(), noise, seen.done, to), seen.done * 4 * D);
          seen.done = to;
          yield null;
        }
        return seen.xi;
      },
    };
    // outputs on the test set, once it is seen, of readout weights [Π D]
    task.outputs = (weights, which = paths) => {
      const { D } = task.data(), all = new Float64Array(4 * D);
      which.forEach((p, k) => all.set(weights.subarray(k * D, (k + 1) * D), p * D));
      return store.seen.value.means(all);
    };
    task.score = (u) => accuracy(task.outputs(readout(task.data(), u, s.temperature)), labels(TESTS));
    return task;
  };

  const part = function* part(task, s, first) {
    const gp = identity(task.paths.length), { U, u, rough } = task.solved(), answer = { U, rough };
    yield answer;
    // what stands in view comes before what does not
    const early = first && views[s.view]?.early && !task.seen();
    if (early) { answer.view = { name: s.view, ...views[s.view](task, s) }; yield answer; }
    const xi = yield* task.tests();
    const key = `${task.own} ${s.temperature}`;
    const [wide, good] = task.cached('wide', key, () => [task.score(gp), accuracy(task.outputs(readout(task.good(), Float64Array.of(1), s.temperature), [0]), labels(TESTS))]);
    answer.accuracy = [task.score(u), wide];
    answer.good = [good];
    yield answer;
    if (first && views[s.view] && !early) { answer.view = { name: s.view, ...views[s.view](task, s, xi) }; yield answer; }
    const keep = { found: null };
    const curve = task.cached('curve', key, () => keep);
    if (!curve.found) {
      const along = yield* sweep(task.data(), { heads: task.heads, widths: WIDTHS, temperature: s.temperature });
      curve.found = along.map((each) => task.score(each.u));
    }
    answer.curve = curve.found;
    answer.alignment = task.cached('alignment', `${key} ${s.width}`, () => [alignment(task.whole(), u), alignment(task.whole(), gp)]);
    yield answer;
  };

  // what only one picture needs, about the first task
  const views = {
    chain: (task, s) => {
      const train = task.train(), e = s.example % s.examples, look = attend(train, task.random(), task.noise);
      look.at(e);
      const n = s.tokens + 1, rows = [0, 1, 2, 3].map((p) => [...look.reach.subarray(p * n, (p + 1) * n)]);
      return { example: e, label: train.y[e], states: [...look.states], seen: [...look.seen], reach: rows };
    },
    kernels: (task, s) => {
      const data = task.whole(), [p, q] = s.pair.map((each) => Math.max(0, task.paths.indexOf(each)));
      const single = (matrix) => Float32Array.from(matrix);
      return { own: single(data.pairKernel(Math.max(p, q), Math.min(p, q))), total: single(data.kernel(task.solved().u)), gp: single(data.kernel(identity(task.paths.length))), labels: [...data.y] };
    },
    alignment: (task) => ({ overlaps: [task.solved().u, identity(task.paths.length)].map((u) => alignment(task.whole(), u)) }),
    predictions: (task, s, xi) => {
      const { u } = task.solved(), of = (each) => [...task.outputs(readout(task.data(), each, s.temperature))];
      const some = 200, every = TESTS / some, D = task.data().D, chosen = new Float64Array(some * 4 * D);
      for (let i = 0; i < some; i += 1) chosen.set(xi.subarray(i * every * 4 * D, (i * every + 1) * 4 * D), i * 4 * D);
      const spread = variances(task.data(), u, s.temperature, choose(chosen, some, task.paths));
      return { means: of(u), gp: of(identity(task.paths.length)), labels: [...labels(TESTS)], sd: Math.sqrt(spread.reduce((sum, x) => sum + x, 0) / some) };
    },
    bargain: (task, s) => {
      if (s.width === Infinity) return { t: null };
      const pair = s.pair.map((each) => Math.max(0, task.paths.indexOf(each)));
      const found = bargain(task.data(), { width: s.width, temperature: s.temperature, ...task.solved() }, pair);
      return { ...found, accuracy: found.moved.map((u) => task.score(u)), moved: null };
    },
  };
  for (const name of ['chain', 'kernels', 'alignment']) views[name].early = true;

  const answers = function* answers(s) {
    const seeds = s.seed === 'paper' ? ['paper'] : Array.from({ length: s.tasks }, (_, i) => s.seed + i), parts = [];
    for (const [seed, store] of stores) {
      if (seeds.includes(seed)) continue;
      give(store);
      stores.delete(seed);
    }
    for (const [i, seed] of seeds.entries()) {
      for (const answer of part(open(seed, s), s, i === 0)) {
        parts[i] = answer;
        // a mean is shown when it is whole; what the first task says is shown at once
        yield i === 0 && answer ? { seeds: 1, view: answer.view, ...mean([answer]) } : null;
      }
      // the noise of 1000 sequences is most of the memory: only the first task keeps it
      if (i > 0) give(stores.get(seed));
      if (i > 0) yield { seeds: parts.length, view: parts[0].view, ...mean(parts) };
    }
  };

  // the posterior of U at finite width, without the limit of large N: better with every draw
  const exact = function* exact(s, { widths = EXACT, draws = 300, warmup = 60, seed = 1 } = {}) {
    const task = open(s.seed, s), data = task.data();
    yield* task.tests();
    for (const width of widths) {
      if (!(width > task.paths.length)) throw new RangeError(`the exact posterior is sampled here for N > ${task.paths.length} only; got N = ${width}`);
      const target = density(data, task.heads, width, s.temperature);
      const start = target.coordinates(solve(data, { heads: task.heads, width, temperature: s.temperature }).point);
      yield null;
      const one = new Float64Array(1), generator = new Generator(seed, options), random = () => generator.uniform(one)[0];
      const weights = new Float64Array(task.paths.length * data.D), found = [];
      for (const draw of nuts(target, random, { start, metric: target.metric(start), warmup })) {
        if (draw.warm) {
          found.push(draw.u);
          readout(data, draw.u, s.temperature).forEach((x, i) => { weights[i] += x; });
        }
        if (found.length === draws) break;
        yield null;
      }
      yield { width, accuracy: accuracy(task.outputs(weights), labels(TESTS)), ...summary(found) };
    }
  };

  // a real network on the first task: `step(count)` moves it and says where it is, and where theory is
  const learner = (s, { width, hot, seed = 1 }) => {
    if (s.off.length) throw new RangeError('the network that learns here has all four heads; switch them on');
    const task = open(s.seed, s), { y } = task.train();
    const net = network(task.xi(), y, width, s.temperature, new Generator(seed, options), options);
    const theory = [...solve(task.data(), { heads: task.heads, width, temperature: s.temperature }).u];
    // what limits a step: forces grow with the features, with 1/𝒯, and in narrow networks
    const strength = task.xi().reduce((total, x) => total + x * x, 0) / (task.xi().length / 4), narrow = (10 / width) ** 0.7;
    const longest = 0.0035 * Math.sqrt(s.temperature / 0.01 / Math.max(1, (strength * y.length) / 100) / narrow);
    let e = longest, steps = 0, { loss } = net, saved = net.save();
    return (count) => {
      const began = performance.now();
      let worst = 0;
      for (let i = 0; i < count; i += 1) {
        const now = net.step(e, hot ? 1 : 20, hot);
        [loss, worst] = [now.loss, Math.max(worst, Math.abs(now.drift))];
        if (worst < DRIFT) continue;
        // too long a step, with which it would run away: back to where it was last seen, with shorter ones
        [e, i, worst] = [e / 1.5, -1, 0];
        net.restore(saved);
        if (e < 1e-7) throw new RangeError('no step is short enough for this setting; choose a higher temperature');
      }
      if (worst < DRIFT / 10) e = Math.min(1.1 * e, longest);
      steps += count;
      saved = net.save();
      return { steps, loss, u: net.order(), theory, ms: performance.now() - began };
    };
  };
  return { answers, exact, learner };
};

// mean and standard error of draws, each an array of the same length
const summary = (draws) => {
  const n = draws.length, u = Array.from(draws[0], (_, k) => draws.reduce((sum, d) => sum + d[k], 0) / n);
  const error = u.map((m, k) => Math.sqrt(draws.reduce((sum, d) => sum + (d[k] - m) ** 2, 0) / (n - 1) / effective(draws.map((d) => d[k]))));
  return { u, error, draws: n };
};

const mean = (parts) => {
  const n = parts.length, over = (get) => parts.reduce((sum, part) => sum + get(part), 0) / n;
  const spread = (get) => (n > 1 ? Math.sqrt(parts.reduce((sum, part) => sum + (get(part) - over(get)) ** 2, 0) / (n - 1) / n) : 0);
  const list = (key, f) => (parts.every((part) => part[key]) ? parts[0][key].map((_, i) => f((part) => part[key][i])) : null);
  const rows = (key) => (parts.every((part) => part[key]) ? parts[0][key].map((row, i) => row.map((_, j) => over((part) => part[key][i][j]))) : null);
  const good = list('good', over), curve = list('curve', over);
  return {
    U: rows('U'), alignment: rows('alignment'), rough: parts.some((part) => part.rough),
    accuracy: list('accuracy', over), error: list('accuracy', spread), good: good && [...good, ...list('good', spread)],
    curve: curve && { accuracy: curve, error: list('curve', spread) },
  };
};
