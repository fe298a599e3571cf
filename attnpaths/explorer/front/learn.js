// Watch it learn: a real network, moved a few steps a frame by gradient descent or Langevin dynamics.
import { around, chart, line, ticks } from './charts.js';
import { connect } from './client.js';
import { button, calm, choice, element, legend, plain, svg } from './dom.js';
import { COLOURS, NAMES } from './settings.js';

// the entries of U that are shown: two paths, and the place in the triangle
const SHOWN = [[0, 0, 0], [2, 2, 5], [1, 1, 2], [3, 3, 9], [2, 0, 3]];
const KEPT = 300;
// pictures in hand or on their way, so that a frame has one even if the worker is late
const AHEAD = 3;
const WORDS = {
  true: 'Langevin dynamics is gradient descent with weight decay and noise. It never settles: it wanders through the posterior, and what it visits, averaged (dots at the right), is what the theory is about. Dashes are the theory, which is made for wide networks: in a narrow one a gap to the dots stays.',
  false: 'Gradient descent with weight decay goes down to one set of weights that is as likely as any near it. The posterior asks for more: how many weights there are with each U. So it ends in another place than the average, more so the narrower the network.',
};

// `now()` gives the engine's present setting
export const learnPanel = (engine, now) => {
  let port = null, id = 0, begun = false, running = false, looking = false, asked = 0, hand = [], trace = [], options = { width: 10, hot: true }, count = 1, axes = null;
  const place = element('div', { class: 'chart' }), words = element('p', { class: 'note' }), status = element('p', { class: 'note strong', 'data-output': 'learning' });
  const message = element('p', { class: 'problem', role: 'alert', hidden: true });
  const busy = () => status.setAttribute('aria-busy', asked + hand.length > 0 && !(running && trace.length > 0));
  const receive = (data) => {
    if (data.id !== id) return;
    message.hidden = !data.problem;
    if (data.problem) { message.textContent = `Cannot go on: ${data.problem}.`; asked = 0; pause(); return; }
    const done = data.steps - ((hand.at(-1) ?? trace.at(-1))?.steps ?? 0);
    asked -= 1;
    hand.push(data);
    // about a third of a frame's time; who wants no movement sees two pictures a second, of as many steps
    const [least, most] = calm() ? [200, 10000] : [6, 400];
    if (data.ms > 0) count = Math.max(1, Math.min(most, Math.round((least / data.ms) * done)));
    if (!running) soon();
  };
  const more = () => {
    asked += 1;
    port.send({ kind: 'learn', id, more: count });
  };
  // Each frame shows the next picture, and the network goes on meanwhile; who pauses sees where it is.
  const look = () => {
    looking = false;
    const shown = hand.splice(0, running ? 1 : hand.length);
    shown.forEach(({ steps, u, loss, theory }) => trace.push({ steps, u, loss, theory }));
    if (running) {
      if (trace.length) while (asked + hand.length < (calm() ? 1 : AHEAD)) more();
      soon();
    }
    if (shown.length) draw();
    busy();
  };
  const soon = () => {
    if (looking) return;
    looking = true;
    if (running && calm()) setTimeout(look, 500);
    else requestAnimationFrame(look);
  };
  const restart = () => {
    port ??= connect(engine, receive);
    id += 1;
    [begun, asked, hand, trace, count] = [true, 1, [], [], 1];
    port.send({ kind: 'learn', id, setting: now(), options: { ...options, seed: id } });
    busy();
  };
  const run = (now) => {
    running = now;
    play.textContent = running ? 'pause' : 'play';
    busy();
    soon();
  };
  const pause = () => run(false);
  const play = button('play', () => {
    if (!trace.length && !asked) restart();
    run(!running);
  }, { class: 'play' });
  const step = button('step', () => {
    pause();
    if (trace.length) { count = 1; more(); busy(); } else if (!asked) restart();
  });
  const again = button('restart', restart);
  const choose = (change) => { options = { ...options, ...change }; mark(); restart(); };
  const how = choice('how it learns', [['true', 'Langevin'], ['false', 'gradient descent']], (value) => choose({ hot: value === 'true' }));
  const wide = choice('width of the network', [[10, 'N = 10'], [30, 'N = 30'], [100, 'N = 100']], (value) => choose({ width: Number(value) }));
  const mark = () => { how.mark(options.hot); wide.mark(options.width); words.textContent = WORDS[options.hot]; };
  mark();

  // what stays as long as the ends of the axes do, and what moves in it
  const frame = (x, y, theory) => {
    const { root, add, inside, X, Y } = chart(place, {
      x, y, xTicks: ticks(...x, 4), yTicks: ticks(...y, 6), xTitle: 'steps', yTitle: `U at N = ${options.width}: network (lines), theory (dashes)`,
    });
    const entries = SHOWN.map(([p, q, k]) => {
      const stroke = p === q ? COLOURS[p] : 'currentColor', trace = svg('polyline', { class: 'trace', stroke });
      add('line', { class: 'dash', stroke, x1: X(0), x2: X(x[1]), y1: Y(theory[k]), y2: Y(theory[k]) });
      inside.append(trace);
      return { k, trace, dot: options.hot && add('circle', { class: 'mean', fill: stroke, cx: X(x[1]) - 3, r: 4 }) };
    });
    return { root, entries, X, Y };
  };
  const draw = () => {
    if (!trace.length) return;
    if (trace.length > KEPT) trace = trace.filter((_, i) => i % 2 === 0);
    // the first fifth is not yet from the posterior
    const last = trace.at(-1), { theory } = last, late = trace.filter(({ steps }) => steps >= last.steps / 5);
    const mean = last.u.map((_, k) => late.reduce((sum, { u }) => sum + u[k], 0) / late.length);
    const all = [...trace.flatMap(({ u }) => SHOWN.map(([, , k]) => u[k])), ...SHOWN.map(([, , k]) => theory[k])];
    const reach = 3 * Math.max(1, ...theory), top = Math.min(Math.max(...all), reach), low = Math.max(Math.min(0, ...all), -reach);
    const x = around(0, Math.max(10, last.steps), 4), y = around(low, top, 4), key = `${[x, y, theory, options.width, options.hot, place.clientWidth]}`;
    if (axes?.key !== key) axes = { key, ...frame(x, y, theory) };
    for (const { k, trace: path, dot } of axes.entries) {
      path.setAttribute('points', line(trace.map(({ steps, u }) => [axes.X(steps), axes.Y(u[k])])));
      if (dot) dot.setAttribute('cy', axes.Y(Math.min(y[1], Math.max(y[0], mean[k]))));
    }
    const values = SHOWN.map(([p, q, k]) => `${NAMES[p]}${p === q ? '' : ` with ${NAMES[q]}`} ${plain(last.u[k], 2)}`).join(', ');
    axes.root.setAttribute('aria-label', `Order parameter of the network after ${last.steps} steps: ${values}.`);
    status.textContent = `${last.steps} step${last.steps === 1 ? '' : 's'}, mean squared error ${plain(last.loss, 2)}`;
    status.dataset.value = JSON.stringify({ steps: last.steps, u: last.u, mean });
  };
  const names = legend(SHOWN.map(([p, q]) => (p === q ? [COLOURS[p], NAMES[p]] : ['sum', `${NAMES[q]} with ${NAMES[p]}`])));
  const intro = 'A network is drawn at random and learns the training chains of this setting. The theory is about the posterior, that is, about all networks that fit the labels as well as the temperature asks, each as often as it occurs at random.';
  const node = element('div', {}, element('div', { class: 'line' }, play, step, again, how.node, wide.node), message, names, place, status, words, element('p', { class: 'note' }, intro));
  return {
    node, stop: pause,
    // its first step, until somebody plays
    show: () => { if (trace.length) draw(); else if (!begun) restart(); },
    reset: () => { [begun, asked, hand, trace, axes] = [false, 0, [], [], null]; id += 1; pause(); message.hidden = true; status.textContent = ''; place.replaceChildren(); },
    close: () => port?.close(),
  };
};
