"""How long the explorer takes in Chromium, beside one bare `solve`, and what it weighs."""

import gzip
import itertools
import os
import shutil
import statistics
import tempfile
from pathlib import Path

import numpy as np
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from attnpaths import theory
from attnpaths.explorer import RANGES, START, bundle
from benchmarks.timing import milliseconds, paper_problem, table

CHANGES = 15
# milliseconds to U and to accuracies that readers were promised
PROMISED = {
    "width": (60, 60),
    "temperature": (60, 60),
    "sigma_perp": (150, 300),
    "tokens": (400, 1000),
    "examples": (400, 1000),
    "seed": (400, 1000),
}
PAGE = """<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="explorer.css">
<div id="place"></div><script src="explorer.js"></script><script>
attnpathsExplorer.start(document.getElementById('place'), {address: true});
const root = document.querySelector('[data-explorer]');
const { value } = root.querySelector('[data-output=order-parameter]').dataset;
const shown = value && performance.now();
</script>"""
# when the stored answer stood in the page, when it was painted, and when the engine had its own
FIRST = """
const [done] = arguments;
const look = () => {
  const [paint] = performance.getEntriesByName('first-contentful-paint');
  const ready = paint && root.dataset.engine && root.getAttribute('aria-busy') === 'false';
  if (ready) done([shown, paint.startTime, performance.now()]);
  else setTimeout(look, 5);
};
look();
"""
# asks by the address, one value after another, each when the last is answered to the end
MEASURE = """
const [changes, done] = arguments;
const idle = () => new Promise((next) => {
  const look = () => (root.getAttribute('aria-busy') === 'false' ? next() : setTimeout(look, 5));
  look();
});
let worst = 0, frames = [], last = performance.now();
const frame = (now) => {
  frames.push(now - last);
  [worst, last] = [Math.max(worst, now - last), now];
  requestAnimationFrame(frame);
};
(async () => {
  const found = [];
  await idle();
  requestAnimationFrame((now) => { last = now; frame(now); });
  for (const hash of changes) {
    const times = {}, outputs = { U: 'order-parameter', accuracy: 'accuracy' };
    const began = performance.now(), seen = Object.entries(outputs).map(([name, output]) => {
      const observer = new MutationObserver(() => { times[name] ??= performance.now() - began; });
      const watched = root.querySelector(`[data-output=${output}]`);
      observer.observe(watched, { attributeFilter: ['data-value'] });
      return observer;
    });
    [worst, frames, last] = [0, [], performance.now()];
    location.hash = hash;
    await new Promise((next) => setTimeout(next, 0));
    await idle();
    seen.forEach((observer) => observer.disconnect());
    const smooth = frames.filter((took) => took < 20).length / frames.length;
    found.push([times.U, times.accuracy, performance.now() - began, worst, smooth]);
  }
  done(found);
})();
"""

# lets a network of some width learn for some seconds, and counts frames, new pictures and steps
LEARN = """
const [width, hot, done] = arguments;
const press = (selector) => root.querySelector(`[role=tabpanel] ${selector}`).click();
const status = root.querySelector('[data-output=learning]');
const steps = () => JSON.parse(status.dataset.value ?? '{"steps": 0}').steps;
const after = (ms) => new Promise((next) => setTimeout(next, ms));
(async () => {
  press(`[data-choice="${width}"]`);
  press(`[data-choice="${hot}"]`);
  press('.play');
  await after(2000);
  const frames = [], before = steps(), began = performance.now();
  let last = null, pictures = 0, on = true;
  const frame = (now) => {
    if (last) frames.push(now - last);
    last = now;
    if (on) requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  const observer = new MutationObserver(() => { pictures += 1; });
  observer.observe(status, { childList: true });
  await after(5000);
  const seconds = (performance.now() - began) / 1000;
  on = false;
  observer.disconnect();
  press('.play');
  const smooth = frames.filter((took) => took < 20).length / frames.length;
  const drawn = pictures / frames.length, most = Math.max(...frames);
  done([pictures / seconds, drawn, smooth, most, (steps() - before) / seconds]);
})();
"""


def values(name, rng):
    """New values of one control, over its whole range."""
    least, most = RANGES[name]
    if name == "seed":
        return [int(x) for x in rng.integers(1, 1000, CHANGES)]
    if name in ("tokens", "examples"):
        return [int(x) for x in rng.choice(range(least, most + 1), CHANGES, replace=False)]
    if name in ("width", "temperature"):
        return [float(x) for x in np.exp(rng.uniform(np.log(least), np.log(most), CHANGES))]
    return [float(x) for x in rng.uniform(least, most, CHANGES)]


def report():
    """Median times of answers to a change of each control, and sizes."""
    load = f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores at the start"
    xi, y, setting = paper_problem()
    _, bare, _ = milliseconds(lambda: theory.solve(xi, y, width=10, **setting).U)
    rng, rows = np.random.default_rng(0), []
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("chromium-browser") or ""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "page.html").write_text(PAGE, "utf-8")
        (Path(folder) / "explorer.js").write_text(bundle.script(), "utf-8")
        shutil.copy(bundle.HERE / "explorer.css", folder)
        for flag in (
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={folder}/user",
        ):
            options.add_argument(flag)
        driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        driver.set_script_timeout(300)
        driver.get(f"{Path(folder).as_uri()}/page.html")
        first = [f"{took:.0f}" for took in driver.execute_async_script(FIRST)]
        version = driver.capabilities["browserVersion"].split(".")[0]
        for name, promised in PROMISED.items():
            changes = [f"#{name}={value}" for value in values(name, rng)]
            # the first brings back what the last control has changed, and is not counted
            again = f"#{name}={START[name]}&sigma_parallel=1"
            found = driver.execute_async_script(MEASURE, [again, *changes])[1:]
            *times, frame, smooth = (
                statistics.median(column) for column in zip(*found, strict=True)
            )
            cells = [f"{took:.0f} ms" for took in (*times, frame)]
            kept = " and ".join(f"{most}" for most in promised)
            rows.append([name, *cells, f"{smooth:.0%}", f"{times[0] / bare:.1f}", f"{kept} ms"])
        driver.get("about:blank")
        driver.get(f"{Path(folder).as_uri()}/page.html#view=learn")
        driver.execute_async_script(FIRST)
        learned = []
        for width, hot in itertools.product((10, 30, 100), (True, False)):
            pictures, drawn, smooth, frame, steps = driver.execute_async_script(LEARN, width, hot)
            how = "Langevin" if hot else "gradient descent"
            cells = [f"{pictures:.0f}", f"{drawn:.0%}", f"{smooth:.0%}"]
            learned.append([f"{width}, {how}", *cells, f"{frame:.0f} ms", f"{steps:.0f}"])
        driver.quit()
    engine, script = (
        len(gzip.compress(part().encode())) for part in (bundle.engine, bundle.script)
    )
    style = len(gzip.compress((bundle.HERE / "explorer.css").read_bytes()))
    head = [
        "change of",
        "U",
        "accuracies",
        "curve too",
        "longest frame",
        "frames below 20 ms",
        "U, in solves",
        "promised",
    ]
    return (
        f"**The explorer in a page** (Chromium {version}): median over {CHANGES} new values of a "
        f"control, {load}; one `solve` by Python (N = 10, P = 100) takes {bare:.1f} ms "
        f"in the same run. On loading, a stored answer is in the page after {first[0]} ms and "
        f"painted at {first[1]}; at {first[2]} the page has computed it anew, with its curve. "
        f"Compressed, the engine is {engine / 1e3:.1f} kB, all that the explorer loads "
        f"{(script + style) / 1e3:.1f} kB\n\n"
        + table(head, rows)
        + "\n\n**A network that learns in the page**, 5 s each\n\n"
        + table(
            [
                "N",
                "pictures a second",
                "frames with a new picture",
                "frames below 20 ms",
                "longest frame",
                "steps a second",
            ],
            learned,
        )
    )


if __name__ == "__main__":
    print(report())
