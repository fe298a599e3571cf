// One or two sentences on what the network does. A common factor of U only acts as another temperature
// would, so that ratios are spoken of.
import { NAMES, pathsOf } from './settings.js';
import { percent, plain, times } from './dom.js';

const list = (words) => (words.length > 1 ? `${words.slice(0, -1).join(', ')} and ${words.at(-1)}` : words[0] ?? '');
const the = (path) => `the ${NAMES[path].split(' ')[0]}`;

export const sentence = ({ setting, U, accuracy, rough }) => {
  const paths = pathsOf(setting.off), said = [];
  const right = accuracy ? ` The network is right on ${percent(accuracy[0])} of new chains` : '';
  const doubt = `${setting.width < 10 ? ' Below N ≈ 10 the theory’s U should not be trusted, as it is made for wide networks; its predictions hold longer.' : ''}${rough ? ' This U is not exact: rounding hides where the action is least.' : ''}`;
  if (setting.width === 'inf') return `Every path counts the same and no two work together: at infinite width the network is a Gaussian process.${right && `${right}.`}`;
  if (paths.length === 1) return `There is one path, ${the(paths[0])} one, and nothing to choose between: U is a factor, which acts as another temperature would.${right && `${right}.`}${doubt}`;
  const order = paths.map((_, i) => i).sort((a, b) => U[b][b] - U[a][a]), [first] = order;
  const ratio = (i) => U[first][first] / U[i][i];
  const near = order.slice(1).filter((i) => ratio(i) < 1.25), far = order.slice(1).filter((i) => ratio(i) >= 1.25);
  if (!far.length) said.push('All paths count about the same');
  else {
    const adversarial = far.filter((i) => paths[i] % 2), others = far.filter((i) => paths[i] % 2 === 0);
    const less = others.map((i) => `${the(paths[i])} path ${times(ratio(i))} less`);
    const [a, b] = adversarial.map((i) => times(ratio(i)));
    if (adversarial.length === 2) less.push(`the adversarial ones ${a === b ? a : `${a.replace(' times', '')} and ${b}`} less`);
    else if (adversarial.length) less.push(`${the(paths[adversarial[0]])} one ${NAMES[paths[adversarial[0]]].split(' ')[1]} ${a} less`);
    said.push(`${near.length ? `${list([first, ...near].map((i) => `${the(paths[i])} path`))} count most` : `${the(paths[first])} path counts most`}, ${list(less)}`);
  }
  const good = paths.indexOf(0), denoising = paths.indexOf(2);
  if (good >= 0 && denoising >= 0) {
    const tie = U[good][denoising] / Math.sqrt(U[good][good] * U[denoising][denoising]);
    if (tie <= -0.1) said.push(`the denoising path is subtracted from the good one (correlation ${plain(tie, 2)})`);
    else if (tie >= 0.1) said.push(`the denoising path is added to the good one (correlation ${plain(tie, 2)})`);
    else said.push('good and denoising paths hardly work together');
  }
  let text = `${said.join('; ')}.`;
  text = text[0].toUpperCase() + text.slice(1);
  if (accuracy) {
    const gain = 100 * (accuracy[0] - accuracy[1]);
    text += `${right}, ${Math.abs(gain) < 0.05 ? 'as is the Gaussian process' : `${Math.abs(gain).toFixed(1)} points ${gain > 0 ? 'above' : 'below'} the Gaussian process`}.`;
  }
  return text + doubt;
};

// scenes: what to try, and the setting that shows it
export const SCENES = [
  ['narrow: N = 10', {}],
  ['wide: N = 1000', { width: 1000 }],
  ['noisy: σ⊥ = 5', { sigma_perp: 5 }],
  ['noisy, N = ∞', { sigma_perp: 5, width: 'inf' }],
  ['clean: σ⊥ = 0.1', { sigma_perp: 0.1 }],
  ['few: P = 20', { examples: 20 }],
  ['short: T = 10', { tokens: 10 }],
  ['hot: 𝒯 = 1', { temperature: 1 }],
  ['no denoising', { off: ['1.2'] }],
  ['no adversaries', { off: ['2.2'] }],
  ['authors\' data', { seed: 'paper' }],
];
