// Serves an HTTP API with the parameters `login`, `password`, `to` and `text`, which answers with a line of text; policy.txt is an
// example of its policy document.

let accepted = 'OK';
let refused = 'ERROR';

const STATUS = { unauthenticated: 401, throttled: 429, unavailable: 503, internal: 500 };

// Octets as characters of one octet each.
const characters = (octets) => {
  let text = '';
  for (const octet of octets) text += String.fromCharCode(octet);
  return text;
};

const octets = (text) => {
  const percent = encodeURIComponent(text).replace(/%([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
  return Uint8Array.from(percent, (c) => c.charCodeAt(0));
};

// A value of application/x-www-form-urlencoded.
const decode = (value) => {
  const spaced = value.replaceAll('+', ' ');
  try {
    return decodeURIComponent(spaced);
  } catch {
    return spaced;
  }
};

const respond = (status, word, detail) =>
  ({ status, headers: [{ name: 'content-type', value: 'text/plain' }], body: octets(`${word} ${detail}`) });

export const translation = {
  configure(document) {
    document.split('\n').forEach((line, index) => {
      const words = line.split(/\s+/).filter((word) => word !== '');
      if (words.length === 0 || words[0].startsWith('#')) return;
      if (words[0] === 'accepted' && words.length === 2) {
        accepted = words[1];
      } else if (words[0] === 'refused' && words.length === 2) {
        refused = words[1];
      } else {
        // The admin sees this error as the reason of the refusal.
        throw `line ${index + 1}: expected 'accepted WORD' or 'refused WORD'`;
      }
    });
  },

  read(request) {
    const form = request.method === 'POST' ? characters(request.body) : request.query;
    const parameters = new Map();
    for (const pair of form.split('&')) {
      const at = pair.indexOf('=');
      if (at > 0 && !parameters.has(pair.slice(0, at))) parameters.set(pair.slice(0, at), decode(pair.slice(at + 1)));
    }
    const missing = ['login', 'password', 'to', 'text'].find((name) => !parameters.has(name));
    if (missing) return { tag: 'respond', val: respond(400, refused, `${missing} is missing`) };
    const submission = {
      destination: parameters.get('to'),
      content: { tag: 'text', val: parameters.get('text') },
      coding: 'automatic',
      receipts: 'none',
      tlvs: [],
    };
    const credentials = { account: parameters.get('login'), password: parameters.get('password') };
    return { tag: 'submit', val: { credentials, submissions: [submission] } };
  },

  reply(request, outcome) {
    const result = outcome.tag === 'refused' ? outcome : outcome.val[0];
    if (result.tag === 'accepted') return respond(200, accepted, result.val.id);
    return respond(STATUS[result.val.reason] ?? 422, refused, result.val.detail);
  },
};
