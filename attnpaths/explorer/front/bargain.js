// The bargain along one entry of U: entropy against energy, with a handle to drag.
import { chart, line, ticks } from './charts.js';
import { button, calm, element, legend, percent, plain, svg } from './dom.js';
import { NAMES } from './settings.js';

const between = (xs, ys, x) => {
  let i = 1;
  while (i < xs.length - 1 && xs[i] < x) i += 1;
  const part = (x - xs[i - 1]) / (xs[i] - xs[i - 1]);
  return ys[i - 1] + part * (ys[i] - ys[i - 1]);
};

// `onMove` is told the value that the entry has been dragged to; gives words, and how to pull it by a part of the whole
export const drawBargain = (box, view, [p, q], id, onMove) => {
  if (!view.t) {
    box.replaceChildren(element('p', {}, 'At infinite width the labels have no influence: entropy alone holds U at the identity. Choose a finite width.'));
    return { words: '' };
  }
  const { t, at, entropy, energy } = view, known = view.known.map((x) => x + at), whole = t.at(-1) - t[0], total = entropy.map((e, i) => e + energy[i]);
  const u = t.map((x) => x + at), inner = total.slice(Math.ceil(t.length / 10), -Math.ceil(t.length / 10));
  const top = Math.min(40, Math.max(...inner)) + 4, low = Math.max(-40, Math.min(...energy, ...entropy)) - 3;
  const name = p === q ? `U of the ${NAMES[p]} path` : `U between ${NAMES[p]} and ${NAMES[q]}`;
  const slider = element('input', { type: 'range', id, 'aria-label': name, min: u[0], max: u.at(-1), step: whole / 200, value: at });
  const output = element('output', { for: id }), now = element('p', { class: 'note', 'aria-live': 'polite' });
  const { root, add, X, Y, width, inside } = chart(box, {
    x: [u[0], u.at(-1)], y: [low, top], xTicks: ticks(u[0], u.at(-1)), yTicks: ticks(low, top, 4), xTitle: name, yTitle: 'N/2 · S, from where it is least',
    name: `Entropy, energy and their sum along ${name}; the sum is least at ${plain(at)}.`,
  });
  for (const [kind, values] of Object.entries({ entropy, energy, sum: total })) inside.append(svg('polyline', { class: kind, points: line(values.map((v, i) => [X(u[i]), Y(v)])) }));
  const forces = svg('g'), stem = add('line', { class: 'axis', y1: Y(low), y2: Y(top) }), handle = add('circle', { class: 'handle', r: 9 });
  root.append(forces);
  const arrow = (y, force, kind, x) => {
    const length = Math.sign(force) * Math.min(90, 26 * Math.log1p(Math.abs(force) * whole));
    if (Math.abs(length) < 3) return;
    const [a, b, tip] = [X(x), Math.max(4, Math.min(width - 4, X(x) + length)), Math.sign(length) * 6];
    forces.append(svg('path', { class: `force ${kind}`, d: `M${a} ${y}H${b}m${-tip} -5l${tip} 5l${-tip} 5` }));
  };
  const show = () => {
    // the slider has steps, and the minimum may lie between two
    const home = Math.abs(slider.valueAsNumber - at) < 0.004 * whole, x = home ? at : slider.valueAsNumber, f = view.slopes.map((each) => -between(u, each, x));
    output.textContent = plain(x);
    slider.setAttribute('aria-valuetext', plain(x));
    for (const [key, value] of [['cx', X(x)], ['cy', Y(Math.min(top, Math.max(low, between(u, total, x))))]]) handle.setAttribute(key, value);
    stem.setAttribute('x1', X(x));
    stem.setAttribute('x2', X(x));
    forces.replaceChildren();
    arrow(Y(top) + 12, f[0], 'entropy', x);
    arrow(Y(top) + 28, f[1], 'energy', x);
    const way = (force, pull) => (Math.abs(force) * whole < 0.5 ? `hardly ${pull}` : `${pull} ${force > 0 ? 'up' : 'down'} with ${plain(Math.abs(force), 2)}`);
    now.textContent = `At ${plain(x)} entropy (blue, dashed) ${way(f[0], 'pulls')} and the labels (orange, dotted) ${way(f[1], 'pull')}; ${home ? 'they balance' : `let go, and it goes back to ${plain(at)}`}. With this U the network is right on ${percent(between(known, view.accuracy, x))} of new chains.`;
    back.disabled = home;
    onMove(x);
  };
  const drag = (event) => {
    const bounds = root.getBoundingClientRect(), part = (event.clientX - bounds.left - X(u[0])) / (X(u.at(-1)) - X(u[0]));
    slider.value = u[0] + Math.min(1, Math.max(0, part)) * whole;
    show();
  };
  root.classList.add('draggable');
  root.addEventListener('pointerdown', (event) => { root.setPointerCapture(event.pointerId); drag(event); });
  root.addEventListener('pointermove', (event) => { if (event.buttons) drag(event); });
  slider.addEventListener('input', show);
  const pull = (part) => { slider.value = at + part * whole; show(); };
  const release = () => {
    const from = slider.valueAsNumber, began = performance.now();
    const fall = (now) => {
      const part = calm() ? 0 : Math.exp(-Math.max(0, now - began) / 90);
      slider.value = at + (from - at) * (part < 0.004 ? 0 : part);
      show();
      if (!back.disabled && root.isConnected) requestAnimationFrame(fall);
    };
    fall(began);
  };
  const back = button('let go', release);
  box.prepend(legend([['entropy', 'entropy'], ['energy', 'energy (labels)'], ['sum', 'their sum, S']]));
  box.append(element('div', { class: 'line' }, element('label', { for: id }, 'move it'), slider, output, back), now);
  show();
  const words = 'Drag the dot, or an entry of U itself; all other entries are held. Where the blue curve is low, random networks are many; where the orange one is low, they explain the labels.';
  return { words, pull, release };
};
