// Small makers of elements, and how numbers are written.
const fill = (node, attributes) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) node.setAttribute(name, value === true ? '' : value);
  }
  return node;
};

export const element = (tag, attributes = {}, ...children) => {
  const node = fill(document.createElement(tag), attributes);
  node.append(...children);
  return node;
};

export const svg = (tag, attributes = {}, text = null) => {
  const node = fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes);
  if (text !== null) node.textContent = text;
  return node;
};

export const button = (text, onclick, attributes = {}) => element('button', { type: 'button', onclick, ...attributes }, text);
// one of several, as buttons: `choose(value)` is called, and marks; returns { node, mark }
export const choice = (label, options, choose) => {
  const buttons = options.map(([value, text]) => button(text, () => choose(value), { 'aria-pressed': false, 'data-choice': value }));
  const mark = (value) => buttons.forEach((each) => each.setAttribute('aria-pressed', each.dataset.choice === `${value}`));
  return { node: element('div', { class: 'choice', role: 'group', 'aria-label': label }, ...buttons), mark };
};

// whether the reader has asked for no movement
export const calm = () => matchMedia('(prefers-reduced-motion: reduce)').matches;
// what the lines of a chart are: [class of a swatch, or a colour, and a word] each
export const legend = (items) => element('p', { class: 'legend' }, ...items.map(([look, word]) => element('span', { class: 'value' },
  element('span', { class: `swatch ${look.startsWith('#') ? '' : look}`, 'aria-hidden': 'true', ...(look.startsWith('#') ? { style: `border-color:${look}` } : {}) }), word)));

export const percent = (value) => `${(100 * value).toFixed(1)} %`;
export const plain = (value, digits = 3) => `${Number(Number(value).toPrecision(digits))}`.replace('-', '−');
export const times = (x) => `${x < 10 ? x.toFixed(1) : plain(x, 2)} times`;
