// Charges by the longest prefix of the destination, for each segment; policy.txt is an example of its policy document.

import { definePrefixes, matchDestination } from 'switchyard:hooks/tables@0.3.0';

let table = 0;         // the host's table of prefixes; a value is a price in millionths
let free = new Set();  // accounts that are not charged

export const billing = {
  configure(document) {
    const rows = [];
    const accounts = new Set();
    document.split('\n').forEach((line, index) => {
      const words = line.split(/\s+/).filter((word) => word !== '');
      if (words.length === 0 || words[0].startsWith('#')) return;
      const [verb, first, price] = words;
      if (verb === 'price' && words.length === 3 && /^\d{1,9}$/.test(price)) {
        rows.push({ key: first, value: Number(price) });
      } else if (verb === 'free' && words.length === 2) {
        accounts.add(first);
      } else {
        // The admin sees this error as the reason of the refusal.
        throw `line ${index + 1}: expected 'price PREFIX MILLIONTHS' or 'free ACCOUNT'`;
      }
    });
    table = definePrefixes('prices', rows);
    free = accounts;
  },

  price(message, leg) {
    if (free.has(message.origin)) return { price: { tag: 'free' } };
    const found = matchDestination(table, 0xffffffff);
    if (!found) return { price: { tag: 'refuse' }, note: 'no price for this destination' };
    const charge = {
      account: message.origin,
      amount: found.value * message.parts,
      keepOnFailure: false,
      settle: false,
    };
    return { price: { tag: 'charge', val: charge }, note: `${message.parts} at ${found.value}` };
  },

  settle(settlements) {},
};
