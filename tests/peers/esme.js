// An ESME that uses npm `smpp`.
//
// Reads one JSON line per action from standard input, and writes one JSON line per event to standard output.
// Actions: {"submit": {fields of a submit_sm}, "tag": any}, {"raw": "name of a command", "fields": {…}, "tag": any},
// {"unbind": true}.
// Start: node esme.js '{"port": 2775, "system_id": "acme", "password": "secret", "bind": "bind_transceiver"}'
'use strict';
const smpp = require('smpp');
const lines = require('readline').createInterface({ input: process.stdin });

const options = JSON.parse(process.argv[2]);

function tell(event) {
  process.stdout.write(JSON.stringify(event) + '\n');
}

// A short_message given as {"hex": "…"} is sent as raw octets.
function readable(fields) {
  for (const name of ['short_message', 'message_payload']) {
    const value = fields[name];
    if (value && value.hex !== undefined) fields[name] = Buffer.from(value.hex, 'hex');
    if (value && value.udh !== undefined) {
      fields[name] = { udh: Buffer.from(value.udh, 'hex'), message: value.text };
    }
  }
  return fields;
}

const session = smpp.connect({ host: '127.0.0.1', port: options.port }, () => {
  session[options.bind || 'bind_transceiver'](
    {
      system_id: options.system_id,
      password: options.password,
      interface_version: options.interface_version || 0x34,
    },
    (answer) => tell({ event: 'bound', status: answer.command_status, system_id: answer.system_id }),
  );
});
session.on('error', (error) => tell({ event: 'error', text: String(error) }));
session.on('close', () => tell({ event: 'closed' }));
session.on('enquire_link', (pdu) => session.send(pdu.response()));
session.on('unbind', (pdu) => {
  tell({ event: 'unbind' });
  session.send(pdu.response());
});
session.on('deliver_sm', (pdu) => {
  const body = pdu.short_message || {};
  const text = body.message || '';
  tell({
    event: 'deliver',
    esm_class: pdu.esm_class,
    source: pdu.source_addr,
    destination: pdu.destination_addr,
    text: Buffer.isBuffer(text) ? text.toString('hex') : text,
    udh: Boolean(body.udh),
    receipted_message_id: pdu.receipted_message_id,
    message_state: pdu.message_state,
  });
  session.send(pdu.response());
});

lines.on('line', (line) => {
  const action = JSON.parse(line);
  if (action.submit) {
    session.submit_sm(readable(action.submit), (answer) =>
      tell({ event: 'answer', tag: action.tag, status: answer.command_status, id: answer.message_id }),
    );
  }
  if (action.raw) {
    session[action.raw](readable(action.fields), (answer) =>
      tell({ ...answer, event: 'answer', tag: action.tag, status: answer.command_status, id: answer.message_id }),
    );
  }
  if (action.unbind) session.unbind(() => session.close());
});
lines.on('close', () => process.exit(0));
