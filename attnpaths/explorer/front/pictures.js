// Pictures of paths, of U, of kernels and of a chain.
import { element, plain, svg } from './dom.js';
import { COLOURS, HEADS, NAMES, pathsOf } from './settings.js';

const POSITIVE = '31, 119, 190', NEGATIVE = '213, 94, 0';
const entry = (value) => (Math.abs(value) >= 99.95 ? value.toFixed(0) : Math.abs(value) >= 9.995 ? value.toFixed(1) : value.toFixed(2)).replace(/^-(?=0\.?0*$)/, '').replace('-', '−');

// from the input through a head of each layer: as thick as the path counts, tied as U says
export const drawPaths = (box, { setting, U }, pair, onHead) => {
  const width = Math.max(220, box.clientWidth || 300), height = 200, off = setting.off, paths = pathsOf(off);
  const columns = [12, width * 0.32, width * 0.64, width - 54], middle = height / 2 - 4, spread = 46;
  const root = svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, class: 'paths' });
  const largest = Math.max(...U.flat().map(Math.abs)), node = (head) => middle + (head ? spread : -spread);
  const end = (p) => middle + 38 * (p - 1.5);
  const curve = (a, y0, b, y1) => `C${(a + b) / 2} ${y0} ${(a + b) / 2} ${y1} ${b} ${y1}`;
  paths.forEach((p, i) => {
    const [one, two] = [p >> 1, p & 1], shift = 5 * (p - 1.5), first = node(one) + shift, second = node(two) + shift;
    const lit = pair.includes(p);
    root.append(svg('path', {
      class: lit ? 'path lit' : 'path', stroke: COLOURS[p], 'stroke-width': (1 + 9 * Math.sqrt(U[i][i] / largest)).toFixed(2),
      d: `M${columns[0]} ${middle + shift}${curve(columns[0], middle + shift, columns[1], first)}${curve(columns[1], first, columns[2], second)}${curve(columns[2], second, columns[3], end(p))}`,
    }));
    root.append(svg('circle', { cx: columns[3], cy: end(p), r: 4, fill: COLOURS[p] }));
  });
  paths.forEach((p, i) => paths.forEach((q, j) => {
    if (j <= i) return;
    const tie = U[i][j] / Math.sqrt(U[i][i] * U[j][j]);
    if (Math.abs(tie) < 0.05) return;
    const x = columns[3] + 6, reach = 14 + 13 * (q - p);
    root.append(svg('path', { class: 'tie', stroke: `rgb(${tie < 0 ? NEGATIVE : POSITIVE})`, 'stroke-width': (6 * Math.abs(tie)).toFixed(2), d: `M${x} ${end(p)}C${x + reach} ${end(p)} ${x + reach} ${end(q)} ${x} ${end(q)}` }));
  }));
  for (const [name, word] of HEADS) {
    const [column, y] = [columns[name[0]], node(name[2] === '2')], gone = off.includes(name), text = svg('text', { x: column, y: y + 4, 'text-anchor': 'middle' }, word);
    const group = svg('g', { class: gone ? 'head gone' : 'head', role: 'button', tabindex: 0, 'aria-pressed': `${!gone}`, 'aria-label': `layer ${name[0]}, ${word} head` });
    group.append(svg('rect', { x: column - 36, y: y - 13, width: 72, height: 26, rx: 13 }), text);
    group.addEventListener('click', () => onHead(name));
    group.addEventListener('keydown', (event) => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); onHead(name); } });
    root.append(group);
  }
  const label = (x, y, text, anchor = 'middle') => root.append(svg('text', { x, y, 'text-anchor': anchor, class: 'faint' }, text));
  label(columns[1], 13, 'layer 1');
  label(columns[2], 13, 'layer 2');
  label(0, middle - 30, 'tokens', 'start');
  label(width - 4, 13, 'output', 'end');
  label(width / 2, height - 4, 'press a head to switch it off');
  const had = box.contains(document.activeElement) ? document.activeElement.getAttribute('aria-label') : null;
  box.replaceChildren(root);
  if (had) box.querySelector(`[aria-label="${had}"]`)?.focus();
};

const title = (p, scope) => {
  const [word, heads] = NAMES[p].replace('adversarial', 'advers.').split(' ');
  return element('th', { scope, title: NAMES[p] }, element('span', { class: 'dot', style: `background:${COLOURS[p]}`, 'aria-hidden': 'true' }), word, ...(heads ? [' ', element('span', { class: 'heads' }, heads)] : []));
};

const shade = (u, largest) => `rgba(${u < 0 ? NEGATIVE : POSITIVE}, ${Math.min(0.75, (0.6 * Math.abs(u)) / largest).toFixed(3)})`;

// U as a table of buttons; it is only built anew when there are other paths
export const drawMatrix = (table, { setting, U }, pair, onPair) => {
  const paths = pathsOf(setting.off);
  if (table.dataset.paths !== `${paths}`) {
    table.dataset.paths = `${paths}`;
    table.replaceChildren(
      element('tr', {}, element('td'), ...paths.map((p) => title(p, 'col'))),
      ...paths.map((p) => element('tr', {}, title(p, 'row'), ...paths.map((q) => element('td', { class: 'entry' }, element('button', { type: 'button', 'data-pair': `${p}-${q}`, onclick: () => onPair([p, q]) }))))),
    );
  }
  const largest = Math.max(...U.flat().map(Math.abs));
  table.dataset.value = JSON.stringify(U);
  U.forEach((row, i) => row.forEach((u, j) => {
    const cell = table.rows[i + 1].cells[j + 1], inner = cell.firstChild, [p, q] = [paths[i], paths[j]];
    inner.textContent = entry(u);
    inner.setAttribute('aria-label', `${NAMES[p]} with ${NAMES[q]}: ${entry(u)}`);
    inner.setAttribute('aria-pressed', (p === pair[0] && q === pair[1]) || (p === pair[1] && q === pair[0]));
    cell.dataset.value = u;
    cell.classList.remove('moved');
    cell.style.backgroundColor = shade(u, largest);
  }));
};

// shows another value of one entry, without a word on it to those who read values; gives the U that it makes
export const moveEntry = (table, { setting, U }, pair, value) => {
  const [i, j] = pair.map((p) => pathsOf(setting.off).indexOf(p));
  for (const [a, b] of [[i, j], [j, i]]) {
    const cell = table.rows[a + 1].cells[b + 1];
    cell.firstChild.textContent = entry(value);
    cell.classList.toggle('moved', value !== U[i][j]);
    cell.style.backgroundColor = shade(value, Math.max(...U.flat().map(Math.abs)));
  }
  return U.map((row, a) => row.map((u, b) => ((a === i && b === j) || (a === j && b === i) ? value : u)));
};

// square pictures of kernels, examples sorted by label
export const drawKernels = (box, { own, total, gp, labels }, [p, q]) => {
  const plus = labels.filter((y) => y > 0).length;
  const heat = (values, name, text) => {
    const n = labels.length, most = values.reduce((a, x, i) => (i % (n + 1) ? Math.max(a, Math.abs(x)) : a), 0) || 1;
    const canvas = element('canvas', { width: n, height: n, role: 'img', 'aria-label': `${name}, from −${plain(most, 2)} to ${plain(most, 2)}` }), pen = canvas.getContext('2d'), image = pen.createImageData(n, n);
    const inks = [POSITIVE, NEGATIVE].map((ink) => ink.split(',').map(Number));
    for (let i = 0; i < n * n; i += 1) {
      const ink = inks[values[i] < 0 ? 1 : 0];
      image.data.set([...ink, Math.min(255, (255 * Math.abs(values[i])) / most)], 4 * i);
    }
    pen.putImageData(image, 0, 0);
    const scale = element('span', { class: 'scale' }, `−${plain(most, 2)}`, element('span', { class: 'ramp', 'aria-hidden': 'true' }), plain(most, 2));
    return element('figure', {}, element('figcaption', {}, text), canvas, scale);
  };
  const between = p === q ? `the ${NAMES[p]} path's own kernel C` : `C between ${NAMES[p]} and ${NAMES[q]}`;
  box.replaceChildren(element('div', { class: 'kernels' },
    heat(own, between, between), heat(total, 'the network\'s kernel', 'all: K = Σ U C / Π'), heat(gp, 'the Gaussian process\'s kernel', 'Gaussian process: U = 1')));
  return `${labels.length} training chains against each other: the first ${plus} of class +, then ${labels.length - plus} of class −. A kernel that separates the classes shows four blocks. Colours are scaled without the diagonal, where each chain meets itself.`;
};

// hidden states, what can be seen of them, and what each path takes from which token
export const drawChain = (box, { example, label, states, seen, reach }, setting) => {
  const width = Math.max(260, box.clientWidth || 600), T = states.length, left = 92, step = (width - left - 10) / T, paths = pathsOf(setting.off);
  const height = 118 + 26 * paths.length, root = svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `Chain ${example + 1}, class ${label > 0 ? '+' : '−'}: ${states.map((s) => (s > 0 ? '+' : '−')).join('')}` });
  const X = (t) => left + step * (t + 0.5), most = Math.max(1.5, ...seen.map(Math.abs)), Y = (value) => 56 - (38 * value) / most, r = Math.min(6, Math.max(2.5, step / 2.6));
  const text = (y, words, colour) => root.append(svg('text', { x: 2, y, ...(colour ? { class: 'strong' } : {}) }, words));
  text(36, 'state +');
  text(84, 'state −');
  root.append(svg('line', { class: 'axis', x1: left, x2: width - 10, y1: 56, y2: 56 }));
  root.append(svg('polyline', { class: 'hidden', points: states.map((s, t) => `${X(t)},${Y(s)}`).join(' ') }));
  states.forEach((s, t) => {
    const flipped = t > 0 && states[t - 1] !== s;
    root.append(svg('circle', { class: flipped ? 'token flipped' : 'token', cx: X(t), cy: Y(seen[t + 1]), r }));
  });
  paths.forEach((p, k) => {
    const base = 130 + 26 * k, row = reach[p], top = Math.max(...row.slice(1), row[0] / 2);
    text(base - 3, NAMES[p].replace('adversarial', 'advers.'));
    row.forEach((value, t) => root.append(svg('rect', { x: t ? X(t - 1) - step * 0.38 : left - 8, y: base - Math.min(20, (20 * value) / top), width: t ? step * 0.76 : 5, height: Math.min(20, (20 * value) / top), fill: COLOURS[p] })));
  });
  box.replaceChildren(root);
  const flips = states.filter((s, t) => t && states[t - 1] !== s).length, chance = label > 0 ? setting.flip_plus : setting.flip_minus;
  return `Training chain ${example + 1} is of class ${label > 0 ? '+' : '−'}, which flips with probability ${plain(chance)}; this one flips ${flips} times (orange). The grey line is the hidden state, dots are what the noise in the plane leaves of it. Bars: how much of each token arrives at the output along each path (each row to its own scale, the first bar cut off); the first, apart, is the empty token, to which the good head turns where the state has flipped.`;
};
