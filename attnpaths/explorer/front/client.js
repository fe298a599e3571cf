// A line to the engine: in a worker, so that the page never waits; on the page's own thread where
// workers are forbidden. `engine()` gives { serve }, and its text is the worker's program.
const here = (engine, receive) => {
  const inside = { postMessage: (data) => setTimeout(receive, 0, data) };
  engine().serve(inside);
  return { postMessage: (data) => setTimeout(() => inside.onmessage({ data }), 0), terminate: () => {} };
};

export const connect = (engine, receive) => {
  let port = null, answered = false, closed = false, last = {};
  const sent = [];
  const hear = (place) => (data) => { answered = true; sent.length = 0; if (!closed) receive({ ...data, place }); };
  const fallBack = () => {
    try {
      port = here(engine, hear('the page\'s own thread, because it may not start a worker'));
      sent.forEach((data) => port.postMessage(data));
    } catch (error) {
      sent.forEach(({ kind, id }) => receive({ kind, id, problem: `this browser cannot run the engine (${error.message})` }));
    }
  };
  const open = () => {
    try {
      const address = URL.createObjectURL(new Blob([`(${engine})().serve(self)`], { type: 'text/javascript' }));
      port = new Worker(address);
      port.onmessage = ({ data }) => hear('a worker')(data);
      port.onerror = (event) => {
        event.preventDefault();
        if (answered) receive({ kind: last.kind, id: last.id, problem: `the engine stopped (${event.message ?? 'no reason was given'}); load the page again` });
        else fallBack();
      };
    } catch {
      fallBack();
    }
  };
  return {
    send: (data) => {
      if (!port) open();
      last = data;
      if (!answered) sent.push(data);
      port.postMessage(data);
    },
    close: () => { closed = true; port?.terminate(); port = null; },
  };
};
