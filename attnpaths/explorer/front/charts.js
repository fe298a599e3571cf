// Charts in pixels, so that letters keep their size: each is drawn into a box at its present width.
import { svg, percent, plain } from './dom.js';

const EDGE = { left: 42, right: 20, top: 22, bottom: 38 };
const HEIGHT = 230;

// an empty chart with axes: X and Y map values to pixels
export const chart = (box, { x, y, xTicks, yTicks, xTitle, yTitle, name, height = HEIGHT }) => {
  const width = Math.max(260, box.clientWidth || 600), { left, right, top, bottom } = EDGE;
  const root = svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': name });
  const X = (value) => left + ((value - x[0]) / (x[1] - x[0])) * (width - left - right);
  const Y = (value) => height - bottom - ((value - y[0]) / (y[1] - y[0])) * (height - top - bottom);
  const add = (tag, attributes, text = null) => { const node = svg(tag, attributes, text); root.append(node); return node; };
  for (const [value, label] of yTicks) {
    add('line', { class: 'axis', x1: left, x2: width - right, y1: Y(value), y2: Y(value) });
    add('text', { x: left - 6, y: Y(value) + 4, 'text-anchor': 'end' }, label);
  }
  for (const [value, label] of xTicks) add('text', { x: X(value), y: height - bottom + 16, 'text-anchor': 'middle' }, label);
  add('text', { x: (left + width - right) / 2, y: height - 5, 'text-anchor': 'middle' }, xTitle);
  add('text', { x: 4, y: 13 }, yTitle);
  // what is drawn into it ends at the axes
  const inside = add('svg', { x: left, y: top, width: width - left - right, height: height - top - bottom, viewBox: `${left} ${top} ${width - left - right} ${height - top - bottom}`, style: 'overflow: hidden' });
  box.replaceChildren(root);
  return { root, add, inside, X, Y, width, height };
};
export const line = (points) => points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(' ');
// the distance of round numbers, some `count` of them between two ends
const distance = (low, high, count) => {
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].find((x) => x * power >= raw) * power;
};
export const ticks = (low, high, count = 5) => {
  const step = distance(low, high, count), found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i += 1) found.push([i * step, plain(i * step, 4)]);
  return found;
};
// round ends with two others between them: what grows reaches them only now and then
export const around = (low, high, count) => {
  const step = distance(low, high, count) / 2;
  return [Math.floor(low / step) * step, Math.ceil(high / step) * step];
};

const WIDTHS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 'inf'];
const along = (width) => (width === 'inf' || width === Infinity ? 4.6 : Math.log10(width));

// `exact`: sampled answers at finite width
export const drawAccuracy = (box, { setting, accuracy, error, good, curve }, exact) => {
  if (!accuracy) return;
  const all = [0.5, ...accuracy, good[0], ...(curve?.accuracy ?? []), ...exact.map((each) => each.accuracy)];
  const floor = Math.floor(10 * Math.min(...all)) / 10, gap = floor < 0.35 ? 0.2 : 0.1, yTicks = [];
  for (let value = 1; value > floor - 0.001; value -= gap) yTicks.push([value, value.toFixed(1)]);
  const { add, X, Y } = chart(box, {
    x: [-0.08, 4.7], y: [floor, 1.02], yTicks, xTicks: [[0, '1'], [1, '10'], [2, '100'], [3, '1000'], [4, '10⁴'], [4.6, '∞']],
    xTitle: 'width N', yTitle: 'accuracy on new chains',
    name: `Accuracy against width. Here ${percent(accuracy[0])}, Gaussian process ${percent(accuracy[1])}, good path alone ${percent(good[0])}.${exact.map((each) => ` Exact at N = ${each.width}: ${percent(each.accuracy)}.`).join('')}`,
  });
  add('rect', { class: 'doubt', x: X(-0.08), y: Y(1.02), width: X(1) - X(-0.08), height: Y(floor) - Y(1.02) });
  ['do not', 'trust U'].forEach((text, i) => add('text', { class: 'faint', x: X(0.46), y: Y(floor) - 22 + 14 * i, 'text-anchor': 'middle' }, text));
  const level = (value, name) => add('line', { class: name, x1: X(0), x2: X(4.6), y1: Y(value), y2: Y(value) });
  level(accuracy[1], 'gp');
  level(good[0], 'good');
  if (curve) {
    const points = WIDTHS.map((width, i) => [X(along(width)), curve.accuracy[i], curve.error[i]]);
    add('polygon', { class: 'band', points: line([...points.map(([x, value, spread]) => [x, Y(value + spread)]), ...points.map(([x, value, spread]) => [x, Y(value - spread)]).reverse()]) });
    add('polyline', { class: 'theory', points: line(points.map(([x, value]) => [x, Y(value)])) });
  }
  for (const each of exact) add('path', { class: 'exact', d: `M${X(along(each.width))} ${Y(each.accuracy)}m-6 0l6-6l6 6l-6 6z` });
  const x = X(along(setting.width));
  add('line', { class: 'bar', x1: x, x2: x, y1: Y(accuracy[0] - error[0]), y2: Y(accuracy[0] + error[0]) });
  add('circle', { class: 'point', cx: x, cy: Y(accuracy[0]), r: 6 });
};

export const drawAlignment = (box, overlaps) => {
  const count = overlaps[0].length;
  const { add, X, Y } = chart(box, {
    x: [0, count], y: [0, 1], yTicks: ticks(0, 1), xTicks: overlaps[0].map((_, i) => [i + 0.5, `${i + 1}`]),
    xTitle: 'principal component of the kernel', yTitle: 'overlap with the labels, one task',
    name: `Overlap of the first ${count} principal components of the kernel with the labels. ${['Here', 'In the Gaussian process'].map((who, i) => {
      const best = overlaps[i].indexOf(Math.max(...overlaps[i]));
      return `${who} component ${best + 1} has the most, ${overlaps[i][best].toFixed(2)}, and all hold ${percent(overlaps[i].reduce((sum, x) => sum + x * x, 0))} of the labels`;
    }).join('; ')}.`,
  });
  overlaps.forEach((each, i) => each.forEach((overlap, rank) => {
    const left = X(rank + 0.12 + 0.4 * i);
    add('rect', { class: i ? 'gp-bar' : 'theory-bar', x: left, y: Y(overlap), width: 0.36 * (X(1) - X(0)), height: Y(0) - Y(overlap) });
  }));
};

// outputs on new chains: class + upwards, class − downwards; the Gaussian process as an outline
export const drawPredictions = (box, { means, gp, labels, sd }) => {
  const sizes = [...means, ...gp].map(Math.abs).sort((a, b) => a - b), end = Math.max(1.2, sizes[Math.floor(0.99 * sizes.length)]), bins = 36;
  const count = (values, label) => {
    const found = new Array(bins).fill(0);
    values.forEach((f, i) => { if (labels[i] === label) found[Math.min(bins - 1, Math.max(0, Math.floor(((f + end) / (2 * end)) * bins)))] += 1; });
    return found;
  };
  const own = [count(means, 1), count(means, -1)], other = [count(gp, 1), count(gp, -1)], most = Math.max(...own.flat(), ...other.flat());
  const wrong = (values) => values.filter((f, i) => f * labels[i] <= 0).length;
  const { add, X, Y } = chart(box, {
    x: [-end, end], y: [-most, most], xTicks: ticks(-end, end), yTicks: ticks(-most, most, 6).map(([n, text]) => [n, text.replace('−', '')]), xTitle: 'output f (mean of the posterior)', yTitle: 'new chains: class + up, class − down',
    name: `Histogram of outputs on new chains. This network gives ${wrong(means)} of ${labels.length} the wrong sign, the Gaussian process ${wrong(gp)}.`,
  });
  const edge = (i) => X(-end + (2 * end * i) / bins);
  own.forEach((found, side) => found.forEach((n, i) => {
    const y = side ? 0 : n, sure = ((i + 0.5) / bins > 0.5) === (side === 0);
    add('rect', { class: sure ? 'theory-bar' : 'theory-bar wrong', x: edge(i) + 0.5, y: Y(y), width: edge(1) - edge(0) - 1, height: Y(0) - Y(n) });
  }));
  other.forEach((found, side) => add('polyline', { class: 'gp thin', points: line(found.flatMap((n, i) => [[edge(i), Y(side ? -n : n)], [edge(i + 1), Y(side ? -n : n)]])) }));
  add('line', { class: 'bar', x1: X(0), x2: X(0), y1: Y(-most), y2: Y(most) });
  return `Left of the middle is called −, right +; faint bars are mistakes: ${wrong(means)} of ${labels.length} for this network, ${wrong(gp)} for the Gaussian process (orange outline). One network drawn from the posterior lies about ±${plain(sd, 2)} around its mean.`;
};
