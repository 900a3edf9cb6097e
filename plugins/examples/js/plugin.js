// Routes by the longest prefix of the destination; policy.txt is an example of its policy document.

import { definePrefixes, matchDestination } from 'switchyard:hooks/tables@0.3.0';

let rules = [];     // [{ prefix, peer }]; without a peer: refused
let sender = null;  // a sender, and the peer for its messages: { name, peer }
let table = 0;      // the host's table of prefixes; a value is an index into rules

export const routing = {
  configure(document) {
    const read = { rules: [], sender: null };
    document.split('\n').forEach((line, index) => {
      const words = line.split(/\s+/).filter((word) => word !== '');
      if (words.length === 0 || words[0].startsWith('#')) return;
      const [verb, first, second] = words;
      if (verb === 'route' && words.length === 3) {
        read.rules.push({ prefix: first, peer: second });
      } else if (verb === 'reject' && words.length === 2) {
        read.rules.push({ prefix: first });
      } else if (verb === 'sender' && words.length === 3 && !read.sender) {
        read.sender = { name: first, peer: second };
      } else {
        // The admin sees this error as the reason of the refusal.
        throw `line ${index + 1}: expected 'route PREFIX PEER', 'reject PREFIX' or, once, 'sender NAME PEER'`;
      }
    });
    table = definePrefixes('prefixes', read.rules.map(({ prefix }, value) => ({ key: prefix, value })));
    ({ rules, sender } = read);
  },

  route(message) {
    const found = matchDestination(table, 0xffffffff);
    const rule = found && rules[found.value];
    if (rule && !rule.peer) {
      return { verdict: { tag: 'reject', val: 'prohibited' }, note: `prefix ${rule.prefix} is refused` };
    }
    if (sender && sender.name === message.source.value) {
      return forward(sender.peer, `sender ${sender.name}`);
    }
    return rule ? forward(rule.peer, `prefix ${rule.prefix}`) : { verdict: { tag: 'pass' } };
  },
};

function forward(peer, note) {
  return { verdict: { tag: 'forward', val: [{ peer, rank: 0, weight: 1, cost: 0 }] }, note };
}
