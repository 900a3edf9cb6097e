// Finds subscribers in a table of the appliance; policy.txt is an example of its policy document.

import { get, open } from 'switchyard:hooks/tables@0.3.0';

let table = 0;          // the appliance's table
let valid = undefined;  // validity of an answer, in milliseconds

export const resolution = {
  configure(document) {
    let name, milliseconds;
    document.split('\n').forEach((line, index) => {
      const words = line.split(/\s+/).filter((word) => word !== '');
      if (words.length === 0 || words[0].startsWith('#')) return;
      const [verb, word] = words;
      if (verb === 'table' && words.length === 2) {
        name = word;
      } else if (verb === 'valid' && words.length === 2 && /^\d{1,9}$/.test(word)) {
        milliseconds = Number(word) * 1000;
      } else {
        // The admin sees this error as the reason of the refusal.
        throw `line ${index + 1}: expected 'table NAME' or 'valid SECONDS'`;
      }
    });
    if (name === undefined) throw "there is no line 'table NAME'";
    table = open(name);
    valid = milliseconds;
  },

  resolve(msisdn) {
    const value = get(table, msisdn);
    if (!value) {
      return { answer: { tag: 'unknown' }, note: 'not in the table' };
    }
    const [imsi, serving] = value.split(',');
    return { answer: { tag: 'found', val: { imsi, serving, valid } } };
  },
};
