// Draws the page's Plotly figures in the page's own colours and width, turns their sliders into
// native ones or buttons, starts explorers, and makes what scrolls sideways reachable by keyboard.
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

  // One control for each figure with frames: a slider, or buttons where the stops are kinds of
  // something. Controls of a page that have one name and the same stops move together.
  const controls = [];

  const part = (kind, properties) => Object.assign(document.createElement(kind), properties);

  const asSlider = (id, name, stops, choose) => {
    const input = part('input', { type: 'range', id, min: 0, max: stops.length - 1, step: 1 });
    const output = part('output', { htmlFor: id });
    const whole = part('div', { className: 'figure-slider' });
    whole.append(part('label', { htmlFor: id, textContent: name }), input, output);
    input.addEventListener('input', () => choose(Number(input.value)));
    const show = (i) => {
      input.value = i;
      output.textContent = stops[i];
      input.setAttribute('aria-valuetext', stops[i]);
    };
    return { whole, show };
  };

  const asButtons = (id, name, stops, choose) => {
    const whole = part('fieldset', { className: 'figure-slider figure-choice' });
    const inputs = stops.map((stop, i) => {
      const input = part('input', { type: 'radio', name: id, id: `${id}-${i}` });
      input.addEventListener('change', () => choose(i));
      whole.append(input, part('label', { htmlFor: input.id, textContent: stop }));
      return input;
    });
    whole.prepend(part('legend', { textContent: name }));
    return { whole, show: (i) => { inputs[i].checked = true; } };
  };

  const addControl = (box) => {
    const slider = box.figure.layout?.sliders?.[0];
    if (!slider) return;
    const id = `control-${controls.length + 1}`;
    const name = slider.currentvalue?.prefix?.replace(/:\s*$/, '') ?? 'setting';
    const stops = slider.steps.map((step) => step.label);
    const key = JSON.stringify([name, stops]);
    const frames = new Map(box.figure.frames.map((frame) => [frame.name, frame]));
    const choose = (i) => controls.filter((other) => other.key === key)
      .forEach((other) => { other.set(i); draw(other.box); });
    const { whole, show } = (slider.name === 'choice' ? asButtons : asSlider)(id, name, stops, choose);
    const set = (i) => {
      show(i);
      box.frame = frames.get(slider.steps[i].args[0][0]);
    };
    controls.push({ key, box, set });
    set(slider.active ?? 0);
    box.before(whole);
  };

  // the address belongs to the first explorer of a page; one that cannot start leaves a word, and not an empty box
  const startExplorers = () => document.querySelectorAll('.explorer-place').forEach((place, i) => {
    try {
      window.attnpathsExplorer.start(place, { ...JSON.parse(place.dataset.start), address: i === 0 });
    } catch (error) {
      place.textContent = `The explorer cannot run in this browser, or its script did not come (${error.message}).`;
    }
  });

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
      addControl(box);
      await draw(box);
      resized.observe(box);
    }
    new MutationObserver(() => boxes.forEach(draw))
      .observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
  };

  const SCROLLERS = ['mjx-container', 'div.math', 'pre', 'div.cell_output', '.table-box', '.pst-scrollable-table-container']
    .map((selector) => `article ${selector}`).join();

  // the sides on which there is more to see, which fade out
  const cue = (box) => {
    // beside a formula lies its text for screen readers, which nobody sees
    const drawn = box.matches('mjx-container') ? box.querySelector('svg')?.getBoundingClientRect().width ?? 0
      // the box of a formula and its number does not scroll
      : box.matches('.math') ? 0 : box.scrollWidth;
    const right = drawn - box.clientWidth - box.scrollLeft;
    const sides = [box.scrollLeft > 1 && 'left', right > 1 && 'right'].filter(Boolean).join(' ');
    if (sides) box.dataset.more = sides;
    else delete box.dataset.more;
  };

  const reachScrollers = () => {
    for (const box of document.querySelectorAll(SCROLLERS)) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute('tabindex');
      box.onscroll = () => cue(box);
      cue(box);
    }
  };

  // on a narrow page a table's verdicts stay in sight while the rest scrolls
  const keepVerdicts = () => {
    for (const table of document.querySelectorAll('article table')) {
      const column = [...(table.tHead?.rows[0]?.cells ?? [])].findIndex((cell) => /^verdict/.test(cell.textContent.trim()));
      if (column >= 0) for (const row of table.rows) row.cells[column]?.classList.add('verdict');
    }
  };

  addEventListener('load', async () => {
    startExplorers();
    keepVerdicts();
    await startFigures();
    await window.MathJax?.startup?.promise;
    // the article changes size with the window, with a sidebar, and when hidden code is shown
    const article = document.querySelector('article');
    if (article) new ResizeObserver(reachScrollers).observe(article);
    reachScrollers();
    document.documentElement.dataset.book = 'ready';
  });
})();
