// Draws the page's Plotly figures in the page's own colours and width, turns their sliders into
// native ones, starts explorers, and makes what scrolls sideways reachable by keyboard.
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

  const layoutFor = (figure, frame, width) => {
    const layout = structuredClone(frame?.layout ?? figure.layout ?? {});
    delete layout.width;
    delete layout.sliders;
    layout.autosize = true;
    layout.template = template(figure.layout?.template);
    layout.margin = { l: 60, r: 20, t: layout.title ? 60 : 20, b: 55, ...layout.margin };
    if (width < NARROW) {
      const top = (frame ?? figure).layout?.margin?.t ?? (layout.title ? 50 : 15);
      layout.margin = { ...layout.margin, l: 45, r: 10, t: top };
      layout.legend = { ...layout.legend, orientation: 'h', x: 0, xanchor: 'left', y: layout.meta?.below ?? -0.25, yanchor: 'top' };
      layout.font = { size: 11, ...layout.font };
    }
    // a finger must scroll the page, not zoom the figure
    if (matchMedia('(pointer: coarse)').matches) layout.dragmode = false;
    return layout;
  };

  const draw = async (box) => {
    box.dataset.drawn = '';
    box.width = box.clientWidth;
    const { data, config } = box.frame ?? box.figure;
    const layout = layoutFor(box.figure, box.frame, box.width);
    if (layout.meta?.alt) box.setAttribute('aria-label', layout.meta.alt);
    // Plotly writes into what it is given, and a frame is shown again
    await Plotly.react(box, { data: structuredClone(data), layout, config: { displayModeBar: false, ...config } });
    box.dataset.drawn = document.documentElement.dataset.theme;
  };

  let sliders = 0;
  const addSlider = (box) => {
    const slider = box.figure.layout?.sliders?.[0];
    if (!slider) return;
    sliders += 1;
    const id = `slider-${sliders}`;
    const name = slider.currentvalue?.prefix?.replace(/:\s*$/, '') ?? 'setting';
    const label = Object.assign(document.createElement('label'), { htmlFor: id, textContent: name });
    const input = Object.assign(document.createElement('input'), { type: 'range', id, min: 0, max: slider.steps.length - 1, step: 1 });
    input.value = slider.active ?? 0;
    const output = document.createElement('output');
    output.htmlFor = id;
    const frames = new Map(box.figure.frames.map((frame) => [frame.name, frame]));
    const show = () => {
      const step = slider.steps[input.value];
      output.textContent = step.label;
      input.setAttribute('aria-valuetext', step.label);
      box.frame = frames.get(step.args[0][0]);
    };
    input.addEventListener('input', () => { show(); draw(box); });
    show();
    const control = document.createElement('div');
    control.className = 'figure-slider';
    control.append(label, input, output);
    box.before(control);
  };

  const startExplorers = async () => {
    const places = [...document.querySelectorAll('.explorer-place')];
    if (!places.length) return;
    const { module, grid } = window.explorer;
    // from disk a page may not import a file, but it may import what it holds
    const address = URL.createObjectURL(new Blob([module], { type: 'text/javascript' }));
    const { mount } = await import(address);
    for (const place of places) mount(place, grid, JSON.parse(place.dataset.setting));
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
      addSlider(box);
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
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute('tabindex');
    }
  };

  addEventListener('load', async () => {
    await startExplorers();
    await startFigures();
    await window.MathJax?.startup?.promise;
    // the article changes size with the window, with a sidebar, and when hidden code is shown
    const article = document.querySelector('article');
    if (article) new ResizeObserver(reachScrollers).observe(article);
    reachScrollers();
    document.documentElement.dataset.book = 'ready';
  });
})();
