// The engine behind a port: a worker's, or one on the page's own thread. The last question of each
// kind wins, also over one that is still being answered.
import { makeEngine } from './answers.js';
import { kind } from './kernels.js';

// lets messages in between two steps, without the delay of a timer
const channel = new MessageChannel(), waiting = [];
channel.port1.onmessage = () => waiting.shift()();
const pause = () => new Promise((resume) => { waiting.push(resume); channel.port2.postMessage(0); });

export const serve = (port, options) => {
  const engine = makeEngine(options), latest = {};
  const said = (question) => ({ id: question.id, kind: question.kind });
  const steps = {
    answer: (question) => engine.answers(question.setting),
    exact: (question) => engine.exact(question.setting, question.options),
    // one picture for each time that it is told to go on: the page decides how fast it looks
    *learn(question) {
      const step = engine.learner(question.setting, question.options);
      for (;;) yield step(question.count.shift());
    },
  };
  const run = async (question) => {
    latest[question.kind] = question;
    try {
      for (const found of steps[question.kind](question)) {
        if (found) port.postMessage({ ...said(question), ...found, by: options?.plain ? 'JavaScript' : kind });
        await pause();
        if (latest[question.kind] !== question) return;
        if (question.count && !question.count.length) await new Promise((resume) => { question.resume = resume; });
        if (latest[question.kind] !== question) return;
      }
      port.postMessage({ ...said(question), done: true });
    } catch (error) {
      port.postMessage({ ...said(question), problem: error.message });
    }
  };
  port.onmessage = ({ data }) => {
    const going = latest[data.kind];
    if (data.more) {
      if (going?.id !== data.id) return;
      going.count.push(data.more);
      going.resume?.();
      return;
    }
    latest[data.kind] = null;
    going?.resume?.();
    if (!data.stop) run(data.kind === 'learn' ? { ...data, count: [1] } : data);
  };
};
