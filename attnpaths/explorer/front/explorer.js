// The laboratory: one front end for a page without a kernel and for a notebook. `start` puts it into
// an element; the engine answers in the page, and Python where there is one and it is asked to.
import { drawBargain } from './bargain.js';
import { drawAccuracy, drawAlignment, drawPredictions } from './charts.js';
import { connect } from './client.js';
import { button, calm, choice, element, percent, plain } from './dom.js';
import { learnPanel } from './learn.js';
import { drawChain, drawKernels, drawMatrix, drawPaths, moveEntry } from './pictures.js';
import { HEADS, LOOK, SLIDERS, START, VIEWS, fromHash, inPython, lastPosition, positionOf, read, settle, toHash, valueAt } from './settings.js';
import { STORED } from './stored.js';
import { SCENES, sentence } from './words.js';

let mounted = 0;
const shown = (value) => (value === 'inf' ? '∞ = GP' : plain(value, 4));
const written = (setting) => JSON.stringify(setting, Object.keys(setting).sort());
const same = (a, b) => written(a) === written(b);
const lookOf = (state) => Object.fromEntries(Object.keys(LOOK).map((name) => [name, state[name]]));
const askedOf = (state) => Object.fromEntries(Object.keys(START).map((name) => [name, state[name]]));

const build = (id, act) => {
  const parts = { inputs: {}, outputs: {} };
  const slider = (name) => {
    const key = `${id}-${name}`, range = SLIDERS[name];
    const input = element('input', { type: 'range', name, id: key, min: 0, max: lastPosition(range), step: 1, oninput: () => act.set({ [name]: valueAt(range, input.valueAsNumber) }) });
    // JupyterLab would take the keys that move a slider for itself
    input.addEventListener('keydown', (event) => { if (/^(Arrow|Page|Home|End)/.test(event.key)) event.stopPropagation(); });
    parts.inputs[name] = input;
    parts.outputs[name] = element('output', { for: key });
    return element('div', { class: 'control', title: range.hint }, element('label', { for: key }, range.label), parts.outputs[name], input);
  };
  const sliders = Object.keys(SLIDERS), seedId = `${id}-seed`;
  parts.inputs.seed = element('input', { type: 'text', name: 'seed', id: seedId, inputmode: 'numeric', autocomplete: 'off', onchange: ({ target }) => act.type('seed', target.value) });
  parts.inputs.seed.addEventListener('keydown', (event) => event.stopPropagation());
  parts.tasks = choice('how many tasks', [[1, 'one task'], [5, 'mean of five']], act.tasks);
  parts.denoising = choice('denoising head', [['random', 'random'], ['uniform', 'uniform']], (value) => act.set({ denoising: value }));
  parts.heads = HEADS.map(([name, text]) => button(`${name[0]}: ${text}`, () => act.toggle(name), { 'aria-pressed': true, 'data-head': name }));
  parts.reset = button('reset', act.reset, { class: 'reset' });
  const data = element('div', { class: 'line data' }, element('label', { for: seedId }, 'seed'), parts.inputs.seed, button('draw new data', act.redraw, { class: 'redraw' }), parts.tasks.node, parts.reset);
  const more = element('details', { class: 'more' }, element('summary', {}, 'flips and heads'),
    element('div', { class: 'controls' }, ...sliders.slice(6).map(slider), element('div', {}, element('div', { class: 'label' }, 'denoising head'), parts.denoising.node)),
    element('div', { class: 'line' }, 'heads by layer', element('div', { class: 'choice', role: 'group', 'aria-label': 'heads that are on' }, ...parts.heads)));
  parts.scenes = SCENES.map(([text, change]) => button(text, () => act.scene(change), { class: 'scene' }));
  parts.problem = element('p', { class: 'problem', role: 'alert', hidden: true });
  parts.sentence = element('p', { class: 'sentence', role: 'status', 'aria-live': 'polite' });
  const value = (name, label, swatch) => {
    parts[name] = element('strong', { 'data-output': name });
    parts[`${name}-error`] = element('span', {});
    return element('span', { class: 'value' }, element('span', { class: `swatch ${swatch}`, 'aria-hidden': 'true' }), `${label} `, parts[name], parts[`${name}-error`]);
  };
  const values = element('p', { class: 'values' }, value('accuracy', 'this network', 'theory'), value('gp-accuracy', 'Gaussian process', 'gp'), value('good-accuracy', 'good path', 'good'));
  parts.load = element('span', { class: 'load', title: 'training chains for each channel' });
  parts.paths = element('div', { class: 'chart' });
  parts.matrix = element('table', { 'data-output': 'order-parameter' });
  parts.tabs = VIEWS.map(([name, text]) => button(text, () => act.set({ view: name }), { role: 'tab', id: `${id}-tab-${name}`, 'aria-controls': `${id}-view`, 'data-view': name }));
  const keys = (event) => {
    const turn = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!turn) return;
    event.stopPropagation();
    const next = parts.tabs.at((parts.tabs.indexOf(document.activeElement) + turn) % parts.tabs.length);
    next.focus();
    next.click();
  };
  const tabs = element('div', { class: 'tabs', role: 'tablist', 'aria-label': 'pictures', onkeydown: keys }, ...parts.tabs);
  parts.picture = element('div', { class: 'chart' });
  parts.tools = element('div', { class: 'line' });
  parts.words = element('p', { class: 'note' });
  parts.only = element('p', { class: 'note', hidden: true }, 'This picture is of the first task alone, and not of the mean.');
  parts.view = element('div', { role: 'tabpanel', id: `${id}-view`, class: 'view', tabindex: 0 }, parts.tools, parts.only, parts.picture, parts.words);
  parts.code = element('code', {});
  const python = element('details', { class: 'python' }, element('summary', {}, 'the same in Python'), element('pre', { tabindex: 0 }, parts.code));
  parts.by = choice('who answers', [['page', 'this page'], ['python', 'Python']], act.by);
  parts.working = element('span', { 'aria-live': 'polite' });
  parts.lab = element('div', { class: 'line', hidden: true }, 'answered by', parts.by.node, parts.working);
  parts.note = element('p', { class: 'note' });
  const figure = (title, content, name) => element('figure', { class: name }, element('figcaption', {}, title), content);
  parts.root = element('section', { class: 'explorer', 'data-explorer': 'markov', 'aria-label': 'Explorer of the hidden Markov chain task' },
    element('div', { class: 'scenes', role: 'group', 'aria-label': 'scenes to try' }, ...parts.scenes),
    element('div', { class: 'controls' }, ...sliders.slice(0, 6).map(slider)), data, parts.load, more, parts.lab, parts.problem, values,
    element('div', { class: 'pair' }, figure('Attention paths', parts.paths, 'drawing'), figure('Order parameter U', parts.matrix, 'matrix')),
    parts.sentence, tabs, parts.view, python, parts.note);
  return parts;
};

// `setting`: where it starts; `address`: whether the page's address is its own; `model`: a notebook's
export const start = (el, { engine, setting = {}, look = {}, address = false, model = null }) => {
  mounted += 1;
  const first = settle({ ...START, ...LOOK, ...setting, ...look }), id = `explorer-${mounted}`;
  let state = first, answer = null, asked = 0, exact = [], exactFor = '', grip = null, held = null, by = model?.get('by') ?? 'page', timer = null, picture = null;

  const engineSetting = () => ({ ...state, width: state.width === 'inf' ? Infinity : state.width });
  const receive = (data) => {
    if (data.id !== asked) return;
    if (data.problem) {
      complain(`Cannot compute this: ${data.problem}.`);
      if (model && by === 'page') act.by('python');
      else parts.root.setAttribute('aria-busy', false);
      return;
    }
    // a picture of two paths stands until that of the next two is there
    if (data.view) data.view.pair = state.pair;
    // whoever gives the numbers, pictures of one task are the engine's
    if (by === 'python') { if (data.view) { picture = data; showPython(); } return; }
    parts.root.dataset.engine = data.by ?? parts.root.dataset.engine;
    parts.root.dataset.place = data.place;
    if (data.done) parts.root.setAttribute('aria-busy', false);
    else showAnswer({ ...data, setting: askedOf(state) });
  };
  const line = connect(engine, receive);
  let exactLine = null;
  const ask = () => {
    asked += 1;
    parts.root.setAttribute('aria-busy', true);
    parts.root.dataset.answer = '';
    if (by === 'page' || !['accuracy', 'learn'].includes(state.view)) line.send({ kind: 'answer', id: asked, setting: engineSetting() });
    showPython();
  };

  const complain = (text) => { parts.problem.textContent = text; parts.problem.hidden = !text; };
  const change = (next, { write = true } = {}) => {
    const before = askedOf(state);
    state = settle(next);
    const moved = !same(before, askedOf(state));
    if (moved && write) complain('');
    // what samples and learns has widths of its own
    if (!same({ ...before, width: state.width }, askedOf(state))) { learn.reset(); exact = []; exactLine?.send({ kind: 'exact', stop: true }); }
    showSetting();
    showView();
    ask();
    if (!write) return;
    if (model && moved) { model.set('setting', askedOf(state)); model.save_changes(); }
    if (address) {
      clearTimeout(timer);
      timer = setTimeout(() => history.replaceState(history.state, '', toHash(state, first).replace(/^#$/, location.pathname + location.search)), 250);
    }
  };
  const act = {
    set: (changes) => change({ ...state, ...changes }),
    scene: (changes) => change({ ...first, ...START, ...lookOf(state), ...changes }),
    reset: () => change({ ...first, ...lookOf(state) }),
    // the authors' data are one task: several are drawn
    tasks: (count) => act.set({ tasks: count, seed: count > 1 && state.seed === 'paper' ? 0 : state.seed }),
    redraw: () => act.set({ seed: state.seed === 'paper' ? 0 : state.seed + state.tasks }),
    toggle: (name) => {
      const off = state.off.includes(name) ? state.off.filter((each) => each !== name) : [...state.off, name].sort();
      const { value, problem } = read('off', off.join(','));
      if (problem) complain('Each layer needs a head: switch the other one on first.');
      else act.set({ off: value });
    },
    type: (name, text) => {
      const { value, problem } = read(name, text);
      if (problem) { complain(`${problem}.`); showSetting(); } else act.set({ [name]: value });
    },
    by: (who) => { model.set('by', who); model.save_changes(); },
  };
  const parts = build(id, act);
  const learn = learnPanel(engine, engineSetting);

  const showSetting = () => {
    for (const [name, range] of Object.entries(SLIDERS)) {
      parts.inputs[name].value = positionOf(range, state[name]);
      parts.inputs[name].setAttribute('aria-valuetext', shown(state[name]));
      parts.outputs[name].textContent = shown(state[name]);
    }
    parts.load.textContent = `α = P/N = ${state.width === 'inf' ? 0 : plain(state.examples / state.width)}`;
    parts.inputs.seed.value = state.seed;
    for (const [name, input] of Object.entries(parts.inputs)) input.dataset.value = state[name];
    parts.tasks.mark(state.tasks);
    parts.denoising.mark(state.denoising);
    parts.heads.forEach((each) => each.setAttribute('aria-pressed', !state.off.includes(each.dataset.head)));
    parts.tabs.forEach((tab) => {
      const chosen = tab.dataset.view === state.view;
      tab.setAttribute('aria-selected', chosen);
      tab.tabIndex = chosen ? 0 : -1;
    });
    parts.view.setAttribute('aria-labelledby', `${id}-tab-${state.view}`);
    parts.code.textContent = inPython(state);
  };

  const runExact = () => {
    exactLine ??= connect(engine, (data) => {
      if (data.id !== exactFor) return;
      if (data.problem) complain(`Cannot sample this: ${data.problem}.`);
      if (data.accuracy) exact = [...exact.filter((each) => each.width !== data.width), data];
      parts.view.dataset.exact = JSON.stringify(exact);
      if (state.view === 'accuracy') showView();
    });
    exactFor = `${asked}`;
    exact = [];
    exactLine.send({ kind: 'exact', id: exactFor, setting: engineSetting() });
    parts.words.textContent = 'Sampling the exact posterior of U, from narrow to wide: some ten seconds.';
  };
  const EXACT_DONE = 'Diamonds: the exact posterior at finite width, sampled in this page by NUTS, 300 draws each; its predictor is averaged over draws.', ONE = ' They are of the first task alone.';
  const another = (by) => () => act.set({ example: (state.example + by + state.examples) % state.examples });
  const VIEW = {
    accuracy: () => {
      if (answer) drawAccuracy(parts.picture, { ...answer, setting: state }, exact);
      parts.words.textContent = exact.length ? `${EXACT_DONE}${state.tasks > 1 ? ONE : ''}` : 'Blue: this network at all widths; orange: Gaussian process; green, dashed: the good path alone. Shaded: where the theory’s U should not be trusted.';
    },
    alignment: (view) => { drawAlignment(parts.picture, view.overlaps); parts.words.textContent = 'Blue: this network, orange: the Gaussian process. A narrow network gathers the labels in a few leading components of its kernel.'; },
    predictions: (view) => { parts.words.textContent = drawPredictions(parts.picture, view); },
    kernels: (view) => { parts.words.textContent = `${drawKernels(parts.picture, view, state.pair)} Click an entry of U for the kernel of another pair.`; },
    chain: (view) => { parts.words.textContent = drawChain(parts.picture, view, state); },
    bargain: (view) => {
      // a mean of U over tasks is in no balance
      held = null;
      if (state.tasks > 1) { parts.picture.replaceChildren(element('p', {}, 'Each task strikes a bargain of its own, and the mean of several strikes none: choose “one task” above.')); return; }
      const moved = (value) => drawPaths(parts.paths, { ...answer, U: moveEntry(parts.matrix, answer, state.pair, value) }, state.pair, act.toggle);
      held = drawBargain(parts.picture, view, state.pair, `${id}-entry`, moved);
      parts.words.textContent = held.words;
      if (grip?.moved) held.pull?.(grip.far);
    },
  };
  const TOOLS = {
    accuracy: [() => button('lay the exact answer over it', runExact)],
    chain: [() => button('◀ chain before', another(-1)), () => button('next chain ▶', another(1)), () => button('one of the other class', () => act.set({ example: (state.example + Math.ceil(state.examples / 2)) % state.examples }))],
  };
  // an entry of U can be dragged where it stands: its bargain opens, and who lets it go sees it return
  const dragged = {
    pointerdown: ({ target, clientX }) => {
      const entry = target.closest('[data-pair]');
      grip = entry && { pair: entry.dataset.pair.split('-').map(Number), from: clientX, far: 0, moved: false };
    },
    pointermove: ({ buttons, clientX, pointerId }) => {
      if (!grip || !buttons) return;
      grip.far = (clientX - grip.from) / 300;
      if (!grip.moved && Math.abs(clientX - grip.from) > 5) {
        grip.moved = true;
        parts.matrix.setPointerCapture(pointerId);
        act.set({ pair: grip.pair, view: 'bargain' });
      } else if (grip.moved && ofPair(answer.view)) held?.pull?.(grip.far);
    },
    pointerup: () => { if (grip?.moved) held?.release?.(); grip = null; },
    pointercancel: () => dragged.pointerup(),
  };
  const ofPair = (view) => `${view?.pair}` === `${state.pair}`;
  let tools = '';
  const showView = () => {
    const { view } = state;
    if (tools !== view) {
      tools = view;
      parts.tools.replaceChildren(...(TOOLS[view] ?? []).map((make) => make()));
      parts.picture.replaceChildren();
      parts.words.textContent = '';
      learn.stop();
      parts.view.dataset.view = view;
      if (view === 'learn') parts.picture.replaceChildren(learn.node);
    }
    if (view === 'learn') learn.show();
    else if (view === 'accuracy') VIEW.accuracy();
    else if (answer?.view?.name === view && ofPair(answer.view)) VIEW[view](answer.view);
    parts.only.hidden = state.tasks === 1 || ['accuracy', 'bargain'].includes(view);
  };

  const showAnswer = (given) => {
    // what was right for this setting before, but for the width, stays until it is computed anew
    const place = (each) => JSON.stringify({ ...each.setting, width: 0 });
    const kept = answer && place(answer) === place(given) ? { curve: answer.curve, ...(same(answer.setting, given.setting) ? answer : {}) } : {};
    answer = { ...kept, ...Object.fromEntries(Object.entries(given).filter(([, value]) => value)) };
    parts.root.dataset.answer = given.curve ? 'curve' : given.accuracy ? 'accuracies' : 'U';
    const { accuracy, error, good, seeds } = answer;
    if (accuracy) {
      const values = { accuracy: [accuracy[0], error[0]], 'gp-accuracy': [accuracy[1], error[1]], 'good-accuracy': good };
      for (const [name, [mean, spread]] of Object.entries(values)) {
        parts[name].textContent = percent(mean);
        parts[name].dataset.value = mean;
        parts[`${name}-error`].textContent = seeds > 1 ? ` ± ${(100 * spread).toFixed(1)}` : '';
      }
    }
    drawMatrix(parts.matrix, answer, state.pair, (pair) => act.set({ pair, view: ['kernels', 'bargain'].includes(state.view) ? state.view : 'kernels' }));
    drawPaths(parts.paths, answer, state.pair, act.toggle);
    if (accuracy) parts.sentence.textContent = sentence(answer);
    showView();
    const who = state.seed === 'paper' ? 'the authors\' own data' : `${seeds > 1 ? `means over ${seeds} drawn tasks` : 'one drawn task'}`;
    parts.note.textContent = `Theory of ${who}, ${state.examples} training and 1000 new chains${seeds > 1 ? ' each; ± and the band are standard errors' : ''}. ${by === 'python' ? 'Computed by Python.' : parts.root.dataset.engine ? `Computed here, by ${parts.root.dataset.engine} in ${parts.root.dataset.place}.` : ''}`;
  };

  // a notebook's Python: what it says, and what it is asked
  const showPython = () => {
    parts.lab.hidden = !model;
    if (!model) return;
    parts.by.mark(by);
    parts.working.textContent = by === 'python' ? model.get('working') : '';
    const found = model.get('answer');
    if (by !== 'python') return;
    if (!found.setting || !same(found.setting, askedOf(state))) return;
    showAnswer({ ...found, view: picture?.id === asked ? picture.view : null });
    parts.root.setAttribute('aria-busy', Boolean(model.get('working')));
  };
  const fromPython = {
    'change:setting': () => { if (!same(model.get('setting'), askedOf(state))) change({ ...state, ...model.get('setting') }, { write: false }); },
    'change:answer': showPython,
    'change:working': showPython,
    'change:by': () => { by = model.get('by'); ask(); },
    'change:problem': () => {
      if (by !== 'python') return;
      complain(model.get('problem'));
      if (model.get('problem')) parts.root.setAttribute('aria-busy', false);
    },
  };
  // what an address or a link sets is brought into view, unless it is there already
  const bring = () => {
    const { top, bottom } = parts.root.getBoundingClientRect(), seen = Math.min(bottom, innerHeight) - Math.max(top, 0);
    if (seen < 0.6 * Math.min(innerHeight, bottom - top)) parts.root.scrollIntoView({ behavior: calm() ? 'auto' : 'smooth' });
  };
  const fromAddress = () => {
    const found = fromHash(location.hash, first);
    if (!found) return false;
    complain(found.problems.length ? `In the address: ${found.problems.join('; ')}.` : '');
    change(found.setting, { write: false });
    bring();
    return true;
  };
  let width = 0;
  const resized = new ResizeObserver(() => {
    if (parts.root.clientWidth === width || !answer) return;
    width = parts.root.clientWidth;
    drawPaths(parts.paths, answer, state.pair, act.toggle);
    showView();
  });

  for (const [event, hear] of Object.entries(dragged)) parts.matrix.addEventListener(event, hear);
  el.append(parts.root);
  showSetting();
  showPython();
  parts.root.setAttribute('aria-busy', false);
  const stored = STORED.find((each) => same(each.setting, askedOf(first)));
  if (stored) showAnswer(stored);
  else parts.sentence.textContent = 'Computing …';
  resized.observe(parts.root);
  if (model) for (const [event, hear] of Object.entries(fromPython)) model.on(event, hear);
  if (address) addEventListener('hashchange', fromAddress);
  if (!(address && fromAddress())) {
    // a stored answer stands already: it is computed anew when somebody looks
    const visible = new IntersectionObserver((entries) => { if (entries.some((each) => each.isIntersecting)) { visible.disconnect(); if (!asked) ask(); } });
    if (answer && state.view === 'accuracy') visible.observe(parts.root);
    else ask();
  }
  return () => {
    resized.disconnect();
    for (const each of [line, exactLine, learn]) each?.close();
    if (address) removeEventListener('hashchange', fromAddress);
    if (model) for (const [event, hear] of Object.entries(fromPython)) model.off(event, hear);
  };
};
