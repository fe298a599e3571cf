// What can be set: ranges, the positions of sliders, what an address says, and the same in Python.
export const NAMES = ['good', 'adversarial (1,2)', 'denoising', 'adversarial (2,2)'];
export const COLOURS = ['#25a777', '#ee2f2a', '#1f5ed8', '#c96ebf'];
export const HEADS = [['1.1', 'one back'], ['1.2', 'random'], ['2.1', 'uniform'], ['2.2', 'random']];
export const VIEWS = [
  ['accuracy', 'Accuracy'], ['chain', 'Chain'], ['kernels', 'Kernels'], ['alignment', 'Alignment'],
  ['predictions', 'Predictions'], ['bargain', 'Bargain'], ['learn', 'Watch it learn'],
];

export const START = {
  width: 10, examples: 100, temperature: 0.01, tokens: 30, sigma_perp: 1, sigma_parallel: 1, flip_plus: 0.3, flip_minus: 0.7,
  seed: 0, tasks: 1, off: [], denoising: 'random',
};
// how it is looked at: no part of what Python is asked
export const LOOK = { view: 'accuracy', pair: [0, 2], example: 0 };

// sliders: from 0 to `steps`; a width may go on to infinity
export const SLIDERS = {
  width: { label: 'width N', hint: 'how many channels each layer has', least: 1, most: 1e4, log: true, steps: 400, infinite: true },
  examples: { label: 'examples P', hint: 'how many chains the network is trained on', least: 4, most: 300, steps: 296, whole: true },
  temperature: { label: 'temperature 𝒯', hint: 'how large an error on the training chains is put up with', least: 1e-3, most: 1, log: true, steps: 150 },
  tokens: { label: 'tokens T', hint: 'how long a chain is', least: 2, most: 50, steps: 48, whole: true },
  sigma_perp: { label: 'noise σ⊥', hint: 'noise in directions that have nothing to do with the states', least: 0, most: 5, steps: 100 },
  sigma_parallel: { label: 'noise σ∥', hint: 'noise in the plane of the states', least: 0, most: 5, steps: 100 },
  flip_plus: { label: 'flips, class +', hint: 'how often the hidden state of a chain of class + flips', least: 0, most: 1, steps: 100 },
  flip_minus: { label: 'flips, class −', hint: 'how often the hidden state of a chain of class − flips', least: 0, most: 1, steps: 100 },
};
const BEYOND = 12;

export const lastPosition = ({ steps, infinite }) => steps + (infinite ? BEYOND : 0);
export const valueAt = ({ least, most, log, steps, infinite }, position) => {
  if (infinite && position > steps + BEYOND / 2) return 'inf';
  const part = Math.min(position, steps) / steps;
  if (!log) return Number((least + (most - least) * part).toFixed(4));
  const value = least * (most / least) ** part;
  return value >= 100 ? Math.round(value) : Number(value.toPrecision(3));
};
export const positionOf = ({ least, most, log, steps }, value) => {
  if (value === 'inf') return steps + BEYOND;
  return Math.round(steps * (log ? Math.log(value / least) / Math.log(most / least) : (value - least) / (most - least)));
};

const oneOf = (values) => [(text) => (values.includes(text) ? text : undefined), `one of ${values.join(', ')}`];
const number = ({ least, most, whole, infinite }) => [(text) => {
  if (infinite && text === 'inf') return 'inf';
  const value = text.trim() === '' ? NaN : Number(text);
  return value >= least && value <= most && (!whole || Number.isInteger(value)) ? value : undefined;
}, `a ${whole ? 'whole ' : ''}number from ${least} to ${most}${infinite ? ', or inf' : ''}`];
const heads = (text) => {
  const off = text.split(/[ ,+]+/).filter(Boolean), known = HEADS.map(([name]) => name);
  const left = known.filter((name) => !off.includes(name));
  return off.every((name) => known.includes(name)) && ['1', '2'].every((layer) => left.some((name) => name[0] === layer)) ? known.filter((name) => off.includes(name)) : undefined;
};
// for each name, a reader of text that gives undefined for what is not allowed, and what is allowed
const READERS = {
  ...Object.fromEntries(Object.entries(SLIDERS).map(([name, range]) => [name, number(range)])),
  seed: [(text) => (text === 'paper' ? text : number({ least: 0, most: Number.MAX_SAFE_INTEGER, whole: true })[0](text)), 'a whole number from 0 on, or paper'],
  tasks: number({ least: 1, most: 10, whole: true }),
  off: [heads, 'names of heads, such as 1.2,2.2, with one left in each layer'],
  denoising: oneOf(['random', 'uniform']),
  view: oneOf(VIEWS.map(([name]) => name)),
  pair: [(text) => (/^[0-3]-[0-3]$/.test(text) ? text.split('-').map(Number) : undefined), 'two paths, such as 0-2'],
  example: number({ least: 0, most: 299, whole: true }),
};

export const read = (name, text) => {
  if (!READERS[name]) return { problem: `there is no “${name}” to set; there are ${Object.keys(READERS).join(', ')}` };
  const value = READERS[name][0](text);
  return value === undefined ? { problem: `${name} must be ${READERS[name][1]}; got “${text}”` } : { value };
};

export const pathsOf = (off) => [0, 1, 2, 3].filter((p) => !off.includes(`1.${1 + (p >> 1)}`) && !off.includes(`2.${1 + (p & 1)}`));

// The authors' data are one draw, of one length, size and noise in the plane: what changes these
// draws anew. Of a pair of paths both must be there.
const PAPER = ['examples', 'tokens', 'sigma_parallel', 'flip_plus', 'flip_minus'];
export const settle = (setting) => {
  const paths = pathsOf(setting.off), pair = setting.pair.every((p) => paths.includes(p)) ? setting.pair : [paths[0], paths.at(-1)];
  if (setting.seed !== 'paper') return { ...setting, pair };
  return PAPER.some((name) => setting[name] !== START[name]) ? { ...setting, pair, seed: 0 } : { ...setting, pair, tasks: 1 };
};

const spell = (name, value) => (name === 'pair' ? value.join('-') : `${value}`);
export const toHash = (setting, from) => `#${Object.entries(setting)
  .filter(([name, value]) => spell(name, value) !== spell(name, from[name]))
  .map(([name, value]) => `${name}=${spell(name, value)}`).join('&')}`;
// an address sets what it names, from the start; null if it names nothing
export const fromHash = (hash, from) => {
  if (!hash.includes('=')) return null;
  const setting = { ...from }, problems = [];
  for (const [name, text] of new URLSearchParams(hash.replace(/^#/, ''))) {
    const { value, problem } = read(name, text);
    if (problem) problems.push(problem);
    else setting[name] = value;
  }
  const settled = settle(setting);
  if (settled.seed !== setting.seed) problems.push('the authors\' data have T = 30, P = 100, σ∥ = 1 and flips 0.3, 0.7; in another setting seed 0 is drawn');
  return { setting: settled, problems };
};

// lines of Python that give the page's numbers
export const inPython = (s) => {
  const paths = pathsOf(s.off), count = (layer) => 2 - s.off.filter((name) => name[0] === layer).length;
  const heads = `(${count('1')}, ${count('2')})`, some = paths.length < 4 ? `[:, [${paths.join(', ')}]]` : '';
  const given = { tokens: s.tokens, sigma_parallel: s.sigma_parallel, sigma_perp: s.sigma_perp, examples: s.examples, p_flip: `(${s.flip_plus}, ${s.flip_minus})`, denoising: `"${s.denoising}"` };
  const usual = { tokens: 30, sigma_parallel: 1, sigma_perp: 1, examples: 100, p_flip: '(0.3, 0.7)', denoising: '"random"' };
  const options = Object.entries(given).filter(([name, value]) => value !== usual[name]).map(([name, value]) => `${name}=${value}`);
  const draw = s.seed === 'paper' ? `paper_task(${options.join(', ')})` : `make_task(${[s.tasks > 1 ? 'seed' : s.seed, ...options].join(', ')})`;
  const width = s.width === 'inf' ? 'float("inf")' : s.width;
  const lines = [
    `task = ${draw}`,
    `train, test = (task.network.features(part.x)${some} for part in (task.train, task.test))`,
    `solved = theory.solve(train, task.train.y, heads=${heads}, width=${width}, temperature=${s.temperature})`,
    'print(solved.U, solved.predict(test).accuracy(task.test.y))',
  ];
  const head = ['from attnpaths import theory', `from attnpaths.tasks.markov import ${s.seed === 'paper' ? 'paper_task' : 'make_task'}`, ''];
  return [...head, ...(s.tasks > 1 ? [`for seed in range(${s.seed}, ${s.seed + s.tasks}):  # the page shows the mean`, ...lines.map((line) => `    ${line}`)] : lines)].join('\n');
};
