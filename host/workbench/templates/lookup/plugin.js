// Finds the network of a number in a table of the appliance; policy.txt is an example of its policy document.

import { getPrefix, open } from 'switchyard:hooks/tables@0.3.0';

let table = 0;       // the appliance's table
let valid = 60000;  // how long an answer holds, in milliseconds

export const numberLookup = {
  configure(document) {
    let name, milliseconds = 60000;
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

  lookUp({ digits, international }) {
    const unknown = (note) => ({ answer: { tag: 'unknown', val: valid }, note });
    if (!international) return unknown('not an international number');
    const found = getPrefix(table, digits);
    if (!found) return unknown('not in the table');
    const [mcc, mnc] = found.value.split('-');
    if (mnc === undefined) return unknown('the row is not MCC-MNC');
    const attributes = [{ name: 'mcc', value: mcc }, { name: 'mnc', value: mnc }];
    return { answer: { tag: 'found', val: { attributes, lifetime: valid } } };
  },
};
