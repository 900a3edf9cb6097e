// Rejects and tags texts by their words, and keeps messages of some senders in quarantine; policy.txt is an example of its
// policy document.

import { text } from 'switchyard:hooks/details@0.3.0';

let rejected = [];        // words in lower case
let senders = new Set();
let tagged = [];          // words in lower case

export const screening = {
  configure(document) {
    const read = { rejected: [], senders: new Set(), tagged: [] };
    document.split('\n').forEach((line, index) => {
      const words = line.split(/\s+/).filter((word) => word !== '');
      if (words.length === 0 || words[0].startsWith('#')) return;
      const [verb, word] = words;
      if (verb === 'reject' && words.length === 2) {
        read.rejected.push(word.toLowerCase());
      } else if (verb === 'quarantine' && words.length === 2) {
        read.senders.add(word);
      } else if (verb === 'tag' && words.length === 2) {
        read.tagged.push(word.toLowerCase());
      } else {
        // The admin sees this error as the reason of the refusal.
        throw `line ${index + 1}: expected 'reject WORD', 'quarantine SENDER' or 'tag WORD'`;
      }
    });
    ({ rejected, senders, tagged } = read);
  },

  screen(message) {
    const characters = (text() ?? '').toLowerCase();
    const find = (words) => words.find((word) => characters.includes(word));
    const word = find(rejected);
    if (word) return { verdict: { tag: 'reject', val: 'prohibited' }, note: `the word ${word}` };
    const sender = message.source.value;
    if (senders.has(sender)) return { verdict: { tag: 'quarantine' }, note: `sender ${sender}` };
    const value = find(tagged);
    const changes = value ? [{ tag: 'set-attribute', val: { name: 'word', value } }] : [];
    return { verdict: { tag: 'pass' }, changes };
  },
};
