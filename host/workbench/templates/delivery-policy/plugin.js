// Retries after increasing waits, then tries the next leg; policy.txt is an example of its policy document.

let waits = [];         // milliseconds before each further attempt
let pause = undefined;  // pause of a peer that throttles, in milliseconds

export const delivery = {
  configure(document) {
    let read = { waits: [], pause: undefined };
    document.split('\n').forEach((line, index) => {
      const words = line.split(/\s+/).filter((word) => word !== '');
      if (words.length === 0 || words[0].startsWith('#')) return;
      const [verb, ...rest] = words;
      const numbers = rest.length > 0 && rest.every((word) => /^\d{1,9}$/.test(word));
      const milliseconds = numbers ? rest.map((word) => Number(word) * 1000) : [];
      if (verb === 'wait' && numbers) {
        read.waits = milliseconds;
      } else if (verb === 'pause' && numbers && rest.length === 1) {
        read.pause = milliseconds[0];
      } else {
        // The admin sees this error as the reason of the refusal.
        throw `line ${index + 1}: expected 'wait SECONDS ...' or 'pause SECONDS'`;
      }
    });
    ({ waits, pause } = read);
  },

  next(message, attempt) {
    const note = `attempt ${attempt.number}`;
    if (attempt.class === 'throttled') {
      // The peer waits, not the message.
      const advice = pause === undefined ? undefined : { pause };
      return { step: { tag: 'retry-after', val: 0 }, advice, note };
    }
    const wait = waits[attempt.number - 1];
    const again = wait !== undefined && attempt.class !== 'permanent';
    return { step: again ? { tag: 'retry-after', val: wait } : { tag: 'next-leg' }, note };
  },
};
