// Uses what JavaScript's library thinks a system has, as the policy document says, and tells in its note what came of it.

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
