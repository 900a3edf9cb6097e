// Submits messages to an HTTP API; policy.txt is an example of its policy document.

import { text as messageText } from 'switchyard:hooks/details@0.3.0';
import { fetch } from 'switchyard:hooks/http@0.3.0';
import { get as secret } from 'switchyard:hooks/secrets@0.3.0';

let url = '';  // of the API

const refused = (className, code, note, retryAfter) => (
  { outcome: { tag: 'refused', val: { 'class': className, code, retryAfter } }, note });

const called = (status, receipts) => (
  { response: { status, headers: [], body: new Uint8Array() }, receipts, messages: [] });

// A text in a form: all but unreserved characters as percent signs and hexadecimal digits.
const escape = (text) => encodeURIComponent(text)
  .replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);

// A form is ASCII, and so are the ids of this API.
const octets = (text) => Uint8Array.from(text, (c) => c.charCodeAt(0));
const characters = (list) => String.fromCharCode(...list);

// The value of a field in a query. Escapes are not decoded: this API needs none.
const field = (query, name) => {
  const found = query.split('&').find((pair) => pair.startsWith(`${name}=`));
  return found === undefined ? undefined : found.slice(name.length + 1);
};

export const peering = {
  configure(document) {
    let address;
    document.split('\n').forEach((line, index) => {
      const words = line.split(/\s+/).filter((word) => word !== '');
      if (words.length === 0 || words[0].startsWith('#')) return;
      if (words[0] !== 'url' || words.length !== 2) {
        // The admin sees this error as the reason of the refusal.
        throw `line ${index + 1}: expected 'url ADDRESS'`;
      }
      address = words[1];
    });
    if (address === undefined) throw "there is no line 'url ADDRESS'";
    url = address;
  },

  submit(message, attempt) {
    const text = messageText();
    if (text == null) return refused('permanent', 0, '8-bit data has no text');
    const from = escape(message.source.value);
    const to = escape(message.destination.value);
    let answer;
    try {
      answer = fetch({
        method: 'POST',
        url,
        headers: [['content-type', 'application/x-www-form-urlencoded']],
        body: octets(`from=${from}&to=${to}&text=${escape(text)}`),
      });
    } catch (failure) {
      // The host makes the outcome uncertain if the peer may have the message.
      return refused('temporary', 0, 'no answer');
    }
    const { status, body } = answer;
    if (status >= 200 && status < 300) {
      return { outcome: { tag: 'accepted', val: characters(body).trim() } };
    }
    if (status === 429) return refused('throttled', status, undefined, 1000);
    if (status >= 400 && status < 500) return refused('permanent', status, 'refused by the API');
    return refused('temporary', status, 'the API fails');
  },

  callback(peer, request) {
    const key = secret('callback');
    if (key == null || field(request.query, 'key') !== key) return called(403, []);
    const id = field(request.query, 'id');
    const status = field(request.query, 'status');
    if (id === undefined || status === undefined) return called(400, []);
    const states = { delivered: 'delivered', failed: 'undeliverable' };
    const state = Object.hasOwn(states, status) ? states[status] : 'enroute';
    return called(204, [{ id, state, error: 0 }]);
  },
};
