// Tries the next leg when no DLR comes in time, or a DLR has one of some states; policy.txt is an example of its policy
// document.

const STATES = ['delivered', 'expired', 'deleted', 'undeliverable', 'unknown', 'rejected'];

let wait = undefined;  // milliseconds without a DLR
let nextLeg = [];      // the states

export const receipts = {
  configure(document) {
    const read = { wait: undefined, nextLeg: [] };
    document.split('\n').forEach((line, index) => {
      const words = line.split(/\s+/).filter((word) => word !== '');
      if (words.length === 0 || words[0].startsWith('#')) return;
      const [verb, ...rest] = words;
      if (verb === 'wait' && rest.length === 1 && /^\d{1,9}$/.test(rest[0])) {
        read.wait = Number(rest[0]) * 1000;
      } else if (verb === 'next-leg' && rest.length > 0 && rest.every((word) => STATES.includes(word))) {
        read.nextLeg = rest;
      } else {
        // The admin sees this error as the reason of the refusal.
        throw `line ${index + 1}: expected 'wait SECONDS' or 'next-leg STATE ...'`;
      }
    });
    ({ wait, nextLeg } = read);
  },

  decide(message, submission, event) {
    const hasNext = submission.leg + 1 < submission.legs;
    if (event.tag === 'accepted') {
      return { step: { tag: 'accept' }, wait: hasNext ? wait : undefined };
    }
    if (event.tag === 'timeout') {
      return { step: { tag: 'next-leg' }, note: `no DLR from ${submission.peer}` };
    }
    const { state } = event.val;
    return nextLeg.includes(state) ? { step: { tag: 'next-leg' }, note: state } : { step: { tag: 'accept' } };
  },
};
