// What the tests ask a page. Runs after axe.min.js.

// Texts of which every look is there: contrast is slow to judge, and the same for all that have one
// ink, size, weight and ground. Three of each, as one may lie behind something.
function looks(article) {
  const grounds = new Map(), kinds = new Map();
  const ground = (node) => {
    if (!node) return '';
    if (!grounds.has(node)) {
      const { backgroundColor, backgroundImage, opacity } = getComputedStyle(node);
      const own = `${backgroundColor} ${backgroundImage} ${opacity}`;
      const clear = own === 'rgba(0, 0, 0, 0) none 1';
      grounds.set(node, (clear ? '' : own) + ground(node.parentElement));
    }
    return grounds.get(node);
  };
  for (const node of article.querySelectorAll('*')) {
    if (![...node.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.data.trim())) continue;
    if (!node.checkVisibility({ visibilityProperty: true })) continue;
    const { color, fontSize, fontWeight } = getComputedStyle(node);
    const look = [color, fontSize, fontWeight, ground(node)].join('|');
    if (!kinds.has(look)) kinds.set(look, []);
    if (kinds.get(look).length < 3) kinds.get(look).push(node);
  }
  return [...kinds.values()].flat();
}

window.book = {
  // true once formulas are set and figures are drawn in this theme, at the present width
  settled(theme) {
    const root = document.documentElement;
    const moving = document.getAnimations().some(({ playState }) => playState === 'running');
    return root.dataset.book === 'ready' && root.dataset.theme === theme && !moving &&
      [...document.querySelectorAll('.plotly-figure')].every((box) =>
        box.dataset.drawn === theme && box.querySelector('.main-svg') &&
        [...box.querySelectorAll('.main-svg')].every((svg) => svg.clientWidth === box.clientWidth));
  },

  async inspect(withAxe, done) {
    await new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)));
    const root = document.documentElement;
    const article = document.querySelector('article') ?? document.body;
    const all = (selector) => [...article.querySelectorAll(selector)];
    const name = (node) => node.outerHTML.slice(0, 160);

    const words = article.cloneNode(true);
    words.querySelectorAll('pre, code, script, style, mjx-container, .plotly-figure')
      .forEach((node) => node.remove());
    const rawMath = words.textContent.match(/.{0,30}(\$\$|\\\(|\\\[|\\(eq)?ref\{|\(\?\?\?\)).{0,30}/g) ?? [];

    const ink = getComputedStyle(article).color;
    const inkOf = (box) => [...box.querySelectorAll('.xtick text, .ytick text')]
      .map((text) => getComputedStyle(text).fill);

    // without preload: axe would fetch the styles again, and those requests are not the page's
    const judge = async (context, options) =>
      (await axe.run(context, { resultTypes: ['violations'], preload: false, ...options })).violations
        .filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.target.join(' ')} ${node.html.slice(0, 160)}`));
    const contrast = 'color-contrast';
    const violations = !withAxe ? null : [
      ...await judge(article, { rules: { [contrast]: { enabled: false } } }),
      ...await judge({ include: looks(article) }, { runOnly: [contrast] }),
    ];

    // what is cut off at a side, or scrolls, and does not show it
    // (a formula is its drawing: beside it lies a text for screen readers, which nobody sees)
    const drawn = (node) => node.matches('mjx-container') ? node.querySelector('svg').getBoundingClientRect().width : node.scrollWidth;
    const cut = (node) => node.clientWidth > 1 && drawn(node) > node.clientWidth + 1 && !node.matches('.math') &&
      getComputedStyle(node).overflowX !== 'visible' && !node.dataset.more;

    const figures = all('.plotly-figure');
    done({
      theme: root.dataset.theme,
      ready: root.dataset.book === 'ready',
      overflow: Math.max(root.scrollWidth, document.body.scrollWidth) - root.clientWidth,
      height: article.scrollHeight,
      cut: all('*').filter((node) => !node.closest('mjx-assistive-mml, svg, .plotly-figure, .explorer') && cut(node)).map(name),
      math: all('.math').length,
      undrawnMath: all('.math').filter((node) => !node.querySelector('mjx-container svg')).map(name),
      brokenMath: all('mjx-merror, [data-mjx-error], mjx-container [data-mml-node="merror"]').map(name)
        .concat(all('mjx-container').filter((node) => node.textContent.includes('???')).map(name)),
      rawMath,
      figures: figures.length,
      undrawnFigures: figures.filter((box) => !box.querySelector('.main-svg')).map(name),
      wideFigures: figures.filter((box) =>
        [...box.querySelectorAll('.main-svg')].some((svg) => svg.clientWidth > box.clientWidth + 1)).map(name),
      unnamedFigures: figures.filter((box) => !box.getAttribute('aria-label')).map(name),
      wrongInk: figures.flatMap(inkOf).filter((colour) => colour !== ink),
      deadWidgets: all('script[type="application/vnd.jupyter.widget-view+json"]').length,
      brokenImages: all('img').filter((image) => !image.naturalWidth).map(name),
      violations,
    });
  },
};
