// The explorer's front end. In a notebook its model is an anywidget's, and Python answers; in a
// built page `mount` gives it a stand-in that answers from a grid of stored answers.

const NAMES = ['good', 'adversarial (1,2)', 'denoising', 'adversarial (2,2)'];
const COLOURS = ['#25a777', '#ee2f2a', '#1f5ed8', '#c96ebf'];
const POSITIVE = '31, 119, 190', NEGATIVE = '213, 94, 0';
const CONTROLS = {
  width: 'width N',
  tokens: 'tokens T',
  temperature: 'temperature 𝒯',
  sigma_perp: 'noise σ⊥',
};
const SCENES = [
  ['a narrow network: N = 10', { width: 10, tokens: 30, temperature: 0.01, sigma_perp: 1 }],
  ['a wide one: N = 1000', { width: 1000, tokens: 30, temperature: 0.01, sigma_perp: 1 }],
  ['drown the good path: σ⊥ = 5', { width: 10, tokens: 30, temperature: 0.01, sigma_perp: 5 }],
  ['drown it as a Gaussian process', { width: 'inf', tokens: 30, temperature: 0.01, sigma_perp: 5 }],
  ['hardly any noise: σ⊥ = 0.1', { width: 10, tokens: 30, temperature: 0.01, sigma_perp: 0.1 }],
  ['heat it up: 𝒯 = 1', { width: 10, tokens: 30, temperature: 1, sigma_perp: 1 }],
  ['short chains: T = 10', { width: 10, tokens: 10, temperature: 0.01, sigma_perp: 1 }],
];
let mounted = 0;

const number = (value) => (value === 'inf' ? Infinity : value);
const percent = (value) => `${(100 * value).toFixed(1)} %`;
const minus = (text) => text.replace('-', '−');
const shown = (value) => (value === 'inf' ? '∞ = GP' : `${Number(Number(value).toPrecision(3))}`);

// the stop nearest to a value, on the scale of the logarithm where there is one
const nearest = (stops, value) => {
  const scale = (stop) => (number(stop) > 0 ? Math.log(number(stop)) : -1e3);
  const target = scale(value);
  const distance = (stop) => (scale(stop) === target ? 0 : Math.abs(scale(stop) - target));
  return stops.reduce((best, stop, i) => (distance(stop) < distance(stops[best]) ? i : best), 0);
};

const element = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
};

const svg = (tag, attributes = {}, text = null) => {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== null) node.textContent = text;
  return node;
};

// one sentence on what the network does
export const sentence = ({ setting, U, accuracy }) => {
  const right = `right on ${percent(accuracy[0])} of new chains`;
  if (setting.width === 'inf') {
    return `Every path counts the same and no two work together: the network is a Gaussian process, ${right}.`;
  }
  const fold = (x) => `${x < 10 ? x.toFixed(1) : Math.round(x)}-fold`;
  const said = [];
  const [weak, weaker] = [U[1][1], U[3][3]].map((u) => 1 / u).sort((a, b) => a - b);
  if (weak > 1.25) {
    const much = fold(weak) === fold(weaker) ? fold(weak) : `${fold(weak).replace('fold', '')} and ${fold(weaker)}`;
    said.push(`both adversarial paths are suppressed ${much}`);
  } else if (weaker > 1.25) said.push(`one adversarial path is suppressed ${fold(weaker)}, the other is not`);
  else said.push('the adversarial paths are not suppressed');
  if (U[0][0] > 1.25) said.push(`the good path is amplified ${fold(U[0][0])}`);
  else if (U[0][0] < 0.8) said.push(`the good path is suppressed ${fold(1 / U[0][0])}`);
  const tie = U[0][2] / Math.sqrt(U[0][0] * U[2][2]);
  if (Math.abs(tie) < 0.1) said.push('good and denoising paths hardly work together');
  else said.push(`good and denoising paths are ${tie < 0 ? 'anti-' : ''}correlated (${minus(tie.toFixed(2))})`);
  const gain = 100 * (accuracy[0] - accuracy[1]);
  const than = Math.abs(gain) < 0.05 ? 'like the Gaussian process'
    : `${Math.abs(gain).toFixed(1)} points ${gain > 0 ? 'above' : 'below'} the Gaussian process`;
  const text = `${said.join('; ')}. It is ${right}, ${than}.`;
  return text[0].toUpperCase() + text.slice(1);
};

const drawMatrix = (table, U) => {
  const largest = Math.max(...U.flat().map(Math.abs));
  table.dataset.value = JSON.stringify(U);
  U.forEach((row, i) => row.forEach((u, j) => {
    const cell = table.rows[i + 1].cells[j + 1];
    cell.textContent = minus((Math.round(100 * u) / 100 || 0).toFixed(2));
    cell.dataset.value = u;
    const depth = (0.6 * Math.abs(u)) / largest;
    cell.style.backgroundColor = `rgba(${u < 0 ? NEGATIVE : POSITIVE}, ${depth.toFixed(3)})`;
  }));
};

const frame = (chart, { x, y, xTitle, yTitle }) => {
  const line = (attributes) => chart.append(svg('line', { class: 'axis', ...attributes }));
  const text = (content, attributes) => chart.append(svg('text', attributes, content));
  for (const [value, label] of y) {
    line({ x1: 44, x2: 350, y1: value, y2: value });
    text(label, { x: 38, y: value + 4, 'text-anchor': 'end' });
  }
  for (const [value, label] of x) text(label, { x: value, y: 212, 'text-anchor': 'middle' });
  text(xTitle, { x: 197, y: 233, 'text-anchor': 'middle' });
  text(yTitle, { x: 44, y: 12 });
};

const X = (width) => 54 + (number(width) === Infinity ? 286 : 60 * Math.log10(width));

const drawAccuracy = (chart, answer, widths) => {
  const { setting, accuracy, error, good, curve } = answer;
  const lowest = Math.min(0.5, ...accuracy, ...(curve?.accuracy ?? []));
  const floor = Math.floor(10 * lowest) / 10;
  const Y = (value) => 196 - (172 * (value - floor)) / (1 - floor);
  chart.replaceChildren();
  const ticks = [];
  for (let tick = floor; tick < 1.001; tick += 0.1) ticks.push([Y(tick), tick.toFixed(1)]);
  frame(chart, {
    x: [[X(1), '1'], [X(10), '10'], [X(100), '100'], [X(1000), '1000'], [X(1e4), '10⁴'], [X('inf'), '∞']],
    y: ticks, xTitle: 'width N', yTitle: 'accuracy on new chains',
  });
  const level = (value, name) => chart.append(svg('line', { class: name, x1: X(1), x2: X('inf'), y1: Y(value), y2: Y(value) }));
  level(accuracy[1], 'gp');
  level(good[0], 'good');
  if (curve) {
    const points = widths.map((width, i) => [X(width), curve.accuracy[i], curve.error[i]]);
    const upper = points.map(([x, value, spread]) => `${x},${Y(value + spread)}`);
    const lower = points.map(([x, value, spread]) => `${x},${Y(value - spread)}`).reverse();
    chart.append(svg('polygon', { class: 'band', points: [...upper, ...lower].join(' ') }));
    chart.append(svg('polyline', { class: 'theory', points: points.map(([x, value]) => `${x},${Y(value)}`).join(' ') }));
  }
  const x = X(setting.width);
  chart.append(svg('line', { class: 'bar', x1: x, x2: x, y1: Y(accuracy[0] - error[0]), y2: Y(accuracy[0] + error[0]) }));
  chart.append(svg('circle', { class: 'point', cx: x, cy: Y(accuracy[0]), r: 6 }));
  chart.setAttribute('aria-label', `Accuracy against width. Here ${percent(accuracy[0])}, Gaussian process ${percent(accuracy[1])}, good path alone ${percent(good[0])}.`);
};

const drawAlignment = (chart, { alignment }) => {
  const Y = (value) => 196 - 172 * value;
  chart.replaceChildren();
  const ranks = alignment[0].map((_, i) => i + 1);
  const step = 306 / ranks.length;
  frame(chart, {
    x: ranks.map((rank) => [44 + step * (rank - 0.5), `${rank}`]),
    y: [0, 0.2, 0.4, 0.6, 0.8, 1].map((value) => [Y(value), value.toFixed(1)]),
    xTitle: 'principal component of the kernel', yTitle: 'overlap with the labels',
  });
  alignment.forEach((overlaps, i) => overlaps.forEach((overlap, rank) => {
    const x = 44 + step * (rank + 0.14 + 0.38 * i);
    chart.append(svg('rect', { class: i ? 'gp-bar' : 'theory-bar', x, y: Y(overlap), width: 0.34 * step, height: 196 - Y(overlap) }));
  }));
  const total = (overlaps) => percent(overlaps.reduce((sum, overlap) => sum + overlap ** 2, 0));
  const [best, gpBest] = alignment.map((overlaps) => overlaps.indexOf(Math.max(...overlaps)));
  chart.setAttribute('aria-label', `Overlap of the first ${ranks.length} principal components of the kernel with the labels. `
    + `Here component ${best + 1} has the most, ${alignment[0][best].toFixed(2)}, and all hold ${total(alignment[0])} of the labels; `
    + `in the Gaussian process component ${gpBest + 1}, ${alignment[1][gpBest].toFixed(2)}, and all hold ${total(alignment[1])}.`);
};

const build = (id) => {
  const parts = { inputs: {}, outputs: {}, scenes: [] };
  const controls = Object.entries(CONTROLS).map(([name, label]) => {
    const key = `${id}-${name}`;
    parts.inputs[name] = element('input', { type: 'range', name, id: key, min: 0, step: 1 });
    parts.outputs[name] = element('output', { for: key });
    return element('div', { class: 'control' }, element('label', { for: key }, label), parts.outputs[name], parts.inputs[name]);
  });
  parts.reset = element('button', { type: 'button', class: 'reset' }, 'reset');
  parts.sentence = element('p', { class: 'sentence', role: 'status', 'aria-live': 'polite' });
  parts.problem = element('p', { class: 'problem', role: 'alert', hidden: '' });

  const value = (name, label, swatch) => {
    parts[name] = element('strong', { 'data-output': name });
    parts[`${name}-error`] = element('span', {});
    return element('span', { class: 'value' }, element('span', { class: `swatch ${swatch}`, 'aria-hidden': 'true' }),
      `${label} `, parts[name], parts[`${name}-error`]);
  };
  const values = element('p', { class: 'values' }, value('accuracy', 'this network', 'theory'),
    value('gp-accuracy', 'Gaussian process', 'gp'), value('good-accuracy', 'good path alone', 'good'));

  const head = (i, scope) => {
    const [word, heads] = NAMES[i].split(' ');
    const dot = element('span', { class: 'dot', style: `background:${COLOURS[i]}`, 'aria-hidden': 'true' });
    return element('th', { scope }, dot, word, ...(heads ? [' ', element('span', { class: 'heads' }, heads)] : []));
  };
  parts.matrix = element('table', { 'data-output': 'order-parameter' },
    element('tr', {}, element('td'), ...NAMES.map((_, i) => head(i, 'col'))),
    ...NAMES.map((_, i) => element('tr', {}, head(i, 'row'), ...NAMES.map(() => element('td', { class: 'entry' })))));
  const picture = (title, content) => element('figure', {}, element('figcaption', {}, title), content);
  for (const name of ['curve', 'alignment']) parts[name] = svg('svg', { viewBox: '0 0 360 240', role: 'img' });

  parts.scenes = SCENES.map(([text]) => element('button', { type: 'button', class: 'scene' }, text));
  const caption = element('p', { class: 'scenes' }, 'Try: ', ...parts.scenes.flatMap((button) => [button, ' ']));
  parts.note = element('p', { class: 'note' });
  const attributes = {
    class: 'explorer',
    'data-explorer': 'markov',
    'aria-label': 'Explorer of the hidden Markov chain task',
  };
  parts.root = element('section', attributes,
    element('div', { class: 'controls' }, ...controls, parts.reset), caption, parts.problem, parts.sentence, values,
    element('div', { class: 'pictures' }, picture('Accuracy against width', parts.curve),
      picture('Kernel–task alignment', parts.alignment), picture('Order parameter U', parts.matrix)),
    parts.note);
  return parts;
};

const render = ({ model, el }) => {
  mounted += 1;
  const parts = build(`explorer-${mounted}`);
  const first = model.get('setting');
  const stops = model.get('stops');
  for (const [name, input] of Object.entries(parts.inputs)) input.max = stops[name].length - 1;

  const showSetting = () => {
    const setting = model.get('setting');
    for (const [name, input] of Object.entries(parts.inputs)) {
      input.value = nearest(stops[name], setting[name]);
      input.dataset.value = setting[name];
      input.setAttribute('aria-valuetext', shown(setting[name]));
      parts.outputs[name].textContent = shown(setting[name]);
    }
  };
  let last = null;
  const place = ({ tokens, temperature, sigma_perp }) => `${tokens} ${temperature} ${sigma_perp}`;
  const showAnswer = () => {
    // the first answers have no curve; that of before will do where it is the same
    const given = model.get('answer');
    if (given.curve) last = given;
    const kept = given.setting && last && place(last.setting) === place(given.setting);
    const answer = kept ? { ...given, curve: last.curve } : given;
    const same = answer.setting && Object.entries(model.get('setting')).every(([name, value]) => answer.setting[name] === value);
    parts.root.setAttribute('aria-busy', !same);
    if (!answer.setting) return;
    const { accuracy, error, good, seeds } = answer;
    const shownValues = { accuracy: [accuracy[0], error[0]], 'gp-accuracy': [accuracy[1], error[1]], 'good-accuracy': good };
    for (const [name, [mean, spread]] of Object.entries(shownValues)) {
      parts[name].textContent = percent(mean);
      parts[name].dataset.value = mean;
      parts[`${name}-error`].textContent = seeds > 1 ? ` ± ${(100 * spread).toFixed(1)}` : '';
    }
    drawMatrix(parts.matrix, answer.U);
    drawAccuracy(parts.curve, answer, model.get('curve_widths'));
    drawAlignment(parts.alignment, answer);
    parts.sentence.textContent = sentence(answer);
    parts.note.textContent = `Means over ${seeds} drawn task${seeds > 1 ? 's' : ''}, of 100 training and 1000 new chains each`
      + `${seeds > 1 ? '; ± and the band are standard errors' : ''}. `
      + 'Blue: this network; orange: Gaussian process; green, dashed: the good path alone.';
  };
  const ask = (setting) => {
    model.set('setting', setting);
    model.save_changes();
  };
  for (const [name, input] of Object.entries(parts.inputs)) {
    // JupyterLab would take the keys that move a slider for itself
    input.addEventListener('keydown', (event) => {
      if (/^(Arrow|Page|Home|End)/.test(event.key)) event.stopPropagation();
    });
    input.addEventListener('input', () => ask({ ...model.get('setting'), [name]: stops[name][input.valueAsNumber] }));
  }
  parts.reset.addEventListener('click', () => ask(first));
  parts.scenes.forEach((button, i) => button.addEventListener('click', () => ask(SCENES[i][1])));

  const showProblem = () => {
    parts.problem.textContent = model.get('problem');
    parts.problem.hidden = !model.get('problem');
  };
  const follow = () => { showSetting(); showAnswer(); };
  model.on('change:setting', follow);
  model.on('change:answer', showAnswer);
  model.on('change:problem', showProblem);
  el.append(parts.root);
  follow();
  if (!model.get('answer').setting) model.send({ kind: 'ready' });
  return () => {
    model.off('change:setting', follow);
    model.off('change:answer', showAnswer);
    model.off('change:problem', showProblem);
  };
};

// what the grid has at the stop nearest to a setting, in the form of Python's answers
const lookUp = (grid, asked) => {
  const at = Object.fromEntries(Object.entries(asked).map(([name, value]) => [name, nearest(grid.stops[name], value)]));
  const cell = (key) => grid[key][at.tokens][at.sigma_perp][at.temperature];
  const [n, gp] = [at.width, grid.stops.width.length - 1];
  const flat = cell('U')[n];
  const U = NAMES.map(() => []);
  let k = 0;
  for (let i = 0; i < NAMES.length; i += 1) {
    for (let j = i; j < NAMES.length; j += 1) { U[i][j] = flat[k]; U[j][i] = flat[k]; k += 1; }
  }
  const both = (key) => [cell(key)[n], cell(key)[gp]];
  return {
    setting: Object.fromEntries(Object.entries(at).map(([name, i]) => [name, grid.stops[name][i]])),
    seeds: grid.seeds,
    U,
    accuracy: both('accuracy'),
    error: both('error'),
    good: [cell('good')[0], cell('good_error')[0]],
    alignment: both('alignment'),
    curve: { accuracy: cell('accuracy'), error: cell('error') },
  };
};

// put the explorer into a page that has no kernel
export const mount = (el, grid, setting) => {
  const answer = lookUp(grid, setting);
  const state = { setting: answer.setting, answer, stops: grid.stops, curve_widths: grid.stops.width, problem: '' };
  const listeners = {};
  const tell = (name) => (listeners[`change:${name}`] ?? []).forEach((listener) => listener());
  const model = {
    get: (name) => state[name],
    set: (name, value) => {
      state.answer = lookUp(grid, value);
      state.setting = state.answer.setting;
      tell(name);
    },
    on: (event, listener) => { listeners[event] = [...(listeners[event] ?? []), listener]; },
    off: () => {},
    save_changes: () => {},
    send: () => {},
  };
  return render({ model, el });
};

export default { render };
