// Draws the page's Plotly figures in the page's own colours and width, and makes what
// scrolls sideways reachable by keyboard.
(() => {
  const NARROW = 520;

  const colours = () => {
    const style = getComputedStyle(document.documentElement);
    const value = (name) => style.getPropertyValue(name).trim();
    return {
      ink: value('--pst-color-text-base'),
      line: value('--pst-color-border'),
      paper: value('--pst-color-background'),
      font: getComputedStyle(document.body).fontFamily,
    };
  };

  // What the author set in the layout wins over the template, so only the template is changed.
  const template = (given) => {
    const { ink, line, paper, font } = colours();
    const axis = { gridcolor: line, zerolinecolor: line, linecolor: line, tickcolor: line };
    const solid = { ...axis, backgroundcolor: 'rgba(0,0,0,0)' };
    const base = given?.layout ?? {};
    return {
      ...given,
      layout: {
        ...base,
        font: { ...base.font, color: ink, family: font },
        paper_bgcolor: 'rgba(0,0,0,0)',
        plot_bgcolor: 'rgba(0,0,0,0)',
        hoverlabel: { ...base.hoverlabel, bgcolor: paper, bordercolor: line, font: { color: ink } },
        xaxis: { ...base.xaxis, ...axis },
        yaxis: { ...base.yaxis, ...axis },
        scene: { ...base.scene, xaxis: solid, yaxis: solid, zaxis: solid },
      },
    };
  };

  const layoutFor = (figure, width) => {
    const layout = structuredClone(figure.layout ?? {});
    delete layout.width;
    layout.autosize = true;
    layout.template = template(layout.template);
    layout.margin = { l: 60, r: 20, t: layout.title ? 60 : 20, b: 55, ...layout.margin };
    if (width < NARROW) {
      const top = figure.layout?.margin?.t ?? (layout.title ? 50 : 15);
      layout.margin = { ...layout.margin, l: 45, r: 10, t: top };
      layout.legend = { ...layout.legend, orientation: 'h', x: 0, xanchor: 'left', y: -0.25, yanchor: 'top' };
      layout.font = { size: 11, ...layout.font };
    }
    // a finger must scroll the page, not zoom the figure
    if (matchMedia('(pointer: coarse)').matches) layout.dragmode = false;
    return layout;
  };

  const draw = async (box) => {
    box.dataset.drawn = '';
    box.width = box.clientWidth;
    const { data, frames, config } = box.figure;
    const layout = layoutFor(box.figure, box.width);
    await Plotly.react(box, { data, layout, frames, config: { displayModeBar: false, ...config } });
    box.dataset.drawn = document.documentElement.dataset.theme;
  };

  // Plotly's own `responsive` follows the window, and misses a sidebar that opens or closes.
  const follow = ({ target: box }) => {
    if (box.clientWidth === box.width || !box.clientWidth) return;
    if ((box.clientWidth < NARROW) !== (box.width < NARROW)) draw(box);
    else Plotly.Plots.resize(box);
    box.width = box.clientWidth;
  };

  const startFigures = async () => {
    const boxes = [...document.querySelectorAll('.plotly-figure')];
    if (!boxes.length) return;
    // Plotly sets a title in LaTeX only if MathJax is there first
    await window.MathJax?.startup?.promise;
    const resized = new ResizeObserver((entries) => entries.forEach(follow));
    for (const box of boxes) {
      box.figure = JSON.parse(box.nextElementSibling.textContent);
      await draw(box);
      resized.observe(box);
    }
    new MutationObserver(() => boxes.forEach(draw))
      .observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
  };

  const SCROLLERS = ['mjx-container', 'div.math', 'pre', 'div.cell_output', '.pst-scrollable-table-container']
    .map((selector) => `article ${selector}`).join();

  const reachScrollers = () => {
    for (const box of document.querySelectorAll(SCROLLERS)) {
      if (box.scrollWidth > box.clientWidth + 1) box.tabIndex = 0;
      else box.removeAttribute('tabindex');
    }
  };

  addEventListener('load', async () => {
    await startFigures();
    await window.MathJax?.startup?.promise;
    // the article changes size with the window, with a sidebar, and when hidden code is shown
    const article = document.querySelector('article');
    if (article) new ResizeObserver(reachScrollers).observe(article);
    reachScrollers();
    document.documentElement.dataset.book = 'ready';
  });
})();
