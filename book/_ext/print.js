// Runs in the one document of all pages that is printed: waits until all is drawn, makes what is
// too wide fit the sheet, and then says so. Figures and explorers are drawn by the book's scripts.
window.printing = {
  // what is wider than the text is made smaller: formulas, tables, code that cannot be broken
  fit() {
    for (const box of document.querySelectorAll('mjx-container[display="true"], article table')) {
      const room = box.parentElement.getBoundingClientRect().width;
      const inner = box.matches('table') ? box.getBoundingClientRect().width : box.querySelector('svg')?.getBoundingClientRect().width;
      if (inner > room + 1) box.style.zoom = Math.max(0.5, room / inner);
    }
  },

  // figures in which nothing is drawn, by their names
  empty() {
    return [...document.querySelectorAll('.plotly-figure')]
      .filter((box) => box.clientHeight < 40 || !box.querySelector('.main-svg :is(.trace, .hm, .im, .shapelayer path, .annotation, .cartesianlayer image, .barlayer .point)'))
      .map((box) => box.getAttribute('aria-label'));
  },

  // the numbers of the contents
  number(pages) {
    for (const place of document.querySelectorAll('[data-page]')) place.textContent = pages[place.dataset.page] ?? '';
  },
};

addEventListener('load', async () => {
  const wait = (milliseconds) => new Promise((next) => setTimeout(next, milliseconds));
  const ready = () => document.documentElement.dataset.book === 'ready' &&
    [...document.querySelectorAll('.explorer')].every((explorer) => explorer.getAttribute('aria-busy') === 'false');
  // an explorer that cannot compute still shows its stored start
  for (let waited = 0; !ready() && waited < 300; waited += 1) await wait(1000);
  await document.fonts.ready;
  printing.fit();
  document.body.dataset.printed = 'ready';
});
