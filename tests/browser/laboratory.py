"""A page that holds the explorer without the book, and the same answers by the library."""

import functools
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from attnpaths import theory
from attnpaths.explorer import RANGES, START, bundle
from attnpaths.explorer.answers import kept, lengthen
from attnpaths.tasks.markov import make_task, paper_task

ROOT = "[data-explorer=markov]"
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Laboratory</title>
<meta name="viewport" content="width=device-width, initial-scale=1">{head}
<link rel="stylesheet" href="explorer.css"><body style="margin: 0 auto; max-width: 680px">
<div id="place"></div><script src="explorer.js"></script><script>
attnpathsExplorer.start(document.getElementById('place'), {{address: true}})</script></html>"""
# a notebook's widget, with a model that Python would hold
LAB = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Notebook</title>
<link rel="stylesheet" href="explorer.css"><div id="place"></div><script type="module">
import widget from './module.js';
const state = {state}, listeners = {{}};
window.saved = [];
window.model = {{
  get: (name) => state[name],
  set: (name, value) => {{ state[name] = value; listeners[`change:${{name}}`]?.(); }},
  save_changes: () => saved.push(structuredClone(state)),
  on: (event, listener) => {{ listeners[event] = listener; }},
  off: (event) => {{ delete listeners[event]; }},
}};
widget.render({{ model, el: document.getElementById('place') }});
</script></html>"""
# the book's own start of an explorer whose script is broken, or did not come
PLACE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Page</title>
<div class="explorer-place" data-start="{{}}"></div><script>{script}</script>
<script src="book.js"></script></html>"""
SCRIPTS = {
    "broken": "attnpathsExplorer = { start: () => { throw new Error('too old a browser'); } };",
    "missing": "",
}
POLICY = '<meta http-equiv="Content-Security-Policy" content="{}">'
# what a page may forbid, and the explorer must do without
HEADS = {
    "page": "",
    "no-worker": POLICY.format("worker-src 'none'"),
    "no-wasm": POLICY.format("script-src 'self' 'unsafe-inline' blob:"),
}
TESTS = 1000
BOOK = Path(__file__).parents[2] / "book" / "_ext"


def write(folder):
    """Write the page, and the same page with things forbidden."""
    (folder / "explorer.js").write_text(bundle.script(), "utf-8")
    (folder / "explorer.css").write_bytes((bundle.HERE / "explorer.css").read_bytes())
    state = {"setting": START, "look": {"view": "accuracy"}, "by": "page"}
    state |= {"answer": {}, "working": "", "problem": ""}
    (folder / "module.js").write_text(bundle.module(), "utf-8")
    (folder / "lab.html").write_text(LAB.format(state=json.dumps(state)), "utf-8")
    (folder / "book.js").write_bytes((BOOK / "book.js").read_bytes())
    for name, script in SCRIPTS.items():
        (folder / f"{name}.html").write_text(PLACE.format(script=script), "utf-8")
    for name, head in HEADS.items():
        (folder / f"{name}.html").write_text(PAGE.format(head=head), "utf-8")


def settings(rng, tasks, each):
    """Random settings over the whole range of all controls: `each` of them share one drawn task."""

    def uniform(name):
        return float(rng.uniform(*RANGES[name]))

    def power(name):
        return float(np.exp(rng.uniform(*np.log(RANGES[name]))))

    # every choice of heads is compiled anew: in each run all of them, and one other
    others = [["1.1"], ["1.2"], ["2.1"], ["2.2"], ["1.2", "2.2"], ["1.1", "2.1"]]
    heads = [[], others[rng.integers(len(others))]]
    for i in range(tasks):
        task = {
            "tokens": int(rng.integers(2, 51)),
            "examples": int(rng.integers(4, 301)),
            "seed": int(rng.integers(0, 2**40)),
            "denoising": ["random", "uniform"][int(rng.uniform() < 0.25)],
        }
        names = ("sigma_perp", "sigma_parallel", "flip_plus", "flip_minus")
        task |= {name: uniform(name) for name in names}
        if i % 7 == 0:
            task["sigma_perp"] = 0
        if i % 7 == 2:
            task["tasks"] = 2
        if i % 7 == 4:
            # the authors' data: their noise out of the plane may be changed, and their heads
            free = ("sigma_perp", "denoising")
            task = {"seed": "paper"} | {name: task[name] for name in free}
        for _ in range(each):
            width = "inf" if rng.uniform() < 0.05 else power("width")
            off = heads[int(rng.uniform() < 0.3)]
            yield (
                START
                | task
                | {
                    "width": width,
                    "temperature": power("temperature"),
                    "off": off,
                }
            )


@functools.lru_cache(maxsize=4)
def features(seed, tokens, examples, denoising, sigma_parallel, sigma_perp, flips):
    """ξ and labels of a drawn task in arrays of one shape, so that nothing is compiled twice.

    Tokens that nobody looks at, and examples and dimensions that are zero, change no answer.
    """
    if seed == "paper":
        task = paper_task(sigma_perp, denoising=denoising)
    else:
        task = make_task(
            seed,
            tokens=tokens,
            examples=examples,
            denoising=denoising,
            sigma_parallel=sigma_parallel,
            sigma_perp=sigma_perp,
            p_flip=flips,
        )
    most, size = RANGES["examples"][1], RANGES["tokens"][1]
    parts = []
    for x, count in ((task.train.x, most), (task.test.x, TESTS)):
        network, x = lengthen(task.network, np.asarray(x), size - tokens)
        whole = np.zeros((count, *x.shape[1:]))
        whole[: len(x)] = x
        xi = np.array(network.features(whole)) * np.sqrt(network.dim / task.network.dim)
        xi[len(x) :] = 0
        parts.append(xi)
    y = np.zeros(most)
    y[:examples] = task.train.y
    return parts[0], y, parts[1], np.asarray(task.test.y)


def drawn(setting):
    """The features and labels of a setting's task, all paths."""
    names = ("seed", "tokens", "examples", "denoising", "sigma_parallel", "sigma_perp")
    flips = setting["flip_plus"], setting["flip_minus"]
    return features(*(setting[name] for name in names), flips)


def mixed(U, a, b):
    """The kernel Σ U C/Π of features `[n, Π, D]`, without the library: nothing to compile."""
    weighed = np.einsum("pq,iqd->ipd", U, b)
    return a.reshape(len(a), -1) @ weighed.reshape(len(b), -1).T / a[0].size


def regressed(U, train, y, test, temperature):
    """Mean predictions on `test`, by kernel regression."""
    weights = np.linalg.solve(mixed(U, train, train) + temperature * np.eye(len(y)), y)
    return mixed(U, test, train) @ weights


def combined(train, y):
    """The same problem in other rows: examples combined so that large and small do not mix.

    Without noise out of the plane U may be 10⁷ and K + 𝒯 as good as singular: rounding would then
    hide up to 1e-3 of U. What labels have in directions that no path reaches changes no answer.
    """
    basis, sizes, rows = np.linalg.svd(train.reshape(len(train), -1), full_matrices=False)
    reached = sizes > 1e-13 * sizes[0]
    rows = np.where(reached, sizes, 0)[:, None] * rows
    return rows.reshape(-1, *train.shape[1:]), np.where(reached, basis.T @ y, 0)


class Fresh(NamedTuple):
    """U by the library, and the accuracies of this network, of the GP and of the good path."""

    U: np.ndarray
    accuracies: list[float]
    levels: tuple = ()


def fresh(setting):
    """What the explorer should say: means, where it has several tasks."""
    if setting["tasks"] > 1:
        seeds = range(setting["seed"], setting["seed"] + setting["tasks"])
        each = [fresh(setting | {"seed": seed, "tasks": 1}) for seed in seeds]
        means = [
            sum(right) / len(each) for right in zip(*(one.accuracies for one in each), strict=True)
        ]
        return Fresh(sum(one.U for one in each) / len(each), means)
    train, y, test, test_y = drawn(setting)
    heads, paths = kept(setting["off"])
    heat, width = setting["temperature"], float(setting["width"])
    some = combined(train[:, paths], y)
    solved = theory.solve(*some, heads=heads, width=width, temperature=heat)
    U, gp = np.asarray(solved.U), np.eye(len(paths))
    good = combined(train[:, [0]], y)
    found = [(U, some, paths), (gp, some, paths), (np.eye(1), good, [0])]
    means = [regressed(u, *rows, test[:, p], heat) for u, rows, p in found]
    right = [float(np.mean(np.sign(mean) == test_y)) for mean in means]
    return Fresh(U, right, tuple(map(np.asarray, solved.levels)))


def address(setting):
    """What a page's address says for a setting."""
    words = {name: ",".join(v) if isinstance(v, list) else v for name, v in setting.items()}
    return "#" + "&".join(f"{name}={value}" for name, value in words.items())


# what the explorer shows, at full precision
SHOWN = f"""
const root = document.querySelector('{ROOT}');
const all = (selector) => [...root.querySelectorAll(selector)];
const value = (name) => JSON.parse(all(`[data-output=${{name}}]`)[0].dataset.value);
return {{
  accuracy: value('accuracy'), gp: value('gp-accuracy'), good: value('good-accuracy'),
  U: value('order-parameter'),
  cells: all('td.entry').map((cell) => cell.textContent),
  shown: all('[data-output=accuracy]')[0].textContent,
  sentence: all('[role=status]')[0].textContent,
  problem: all('.problem').filter((node) => !node.hidden).map((node) => node.textContent).join(''),
  inputs: Object.fromEntries(all('input[name]').map(({{name, dataset}}) => [name, dataset.value])),
  python: all('.python code')[0].textContent,
  picture: all('[role=tabpanel]')[0].innerHTML,
  engine: root.dataset.engine, place: root.dataset.place, hash: location.hash,
}};"""
# the same, but null while it computes, or until accuracies are there
SEEN = f"""
const place = document.querySelector('{ROOT}');
const ready = arguments[0] ? ['accuracies', 'curve'].includes(place?.dataset.answer)
  : place?.getAttribute('aria-busy') === 'false';
if (!ready) return null;
{SHOWN}"""

# another address, and done when the explorer has heard of it
ADDRESS = """
const [hash, done] = arguments;
if (location.hash === hash) done();
else {
  addEventListener('hashchange', () => done(), { once: true });
  location.hash = hash;
}"""

# asks an engine of its own, on the page's thread, and gives all that it says
ASK = """
const [{ more, most, ...question }, options, done] = arguments;
const said = [];
// an engine that is left to itself would go on, and the next would wait for it
const finish = () => {
  port.onmessage({ data: { kind: question.kind, stop: true } });
  done(JSON.stringify(said));
};
const port = { postMessage: (message) => {
  said.push(message);
  const left = most && said.length >= most;
  if (message.done || message.problem || left) return finish();
  if (more) port.onmessage({ data: { kind: 'learn', id: 1, more } });
} };
attnpathsExplorer.engine().serve(port, options);
port.onmessage({ data: { id: 1, ...question } });
"""


def ask(driver, question, **options):
    """What an engine says to one question, on the page's own thread."""
    return json.loads(driver.execute_async_script(ASK, question, options))
