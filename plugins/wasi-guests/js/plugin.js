// Uses the system functions of JavaScript's library that the policy document names, and notes the results.

let wanted = '';

const tried = {
  '': () => 'nothing',
  time: () => Date.now(),
  random: () => [Math.random(), Math.random()].join(' '),
  globals: () => ['console', 'process', 'fetch', 'require', 'std', 'os'].filter((name) => name in globalThis).join(' '),
};

export const routing = {
  configure(document) {
    wanted = document;
  },

  route() {
    return { verdict: { tag: 'reject', val: 'prohibited' }, note: String(tried[wanted]()) };
  },
};
