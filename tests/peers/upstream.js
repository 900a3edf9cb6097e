// An SMSC that uses npm `smpp`: accepts submissions with its own ids, sends delivery receipts and MO messages.
//
// Reads one JSON line per action from standard input, and writes one JSON line per event to standard output.
// Actions: {"mo": {fields of a deliver_sm}}, {"drop": true} (cuts all connections).
// Start: node upstream.js '{"receipts": true, "status": 0, "ids": "decimal" | "hex"}'
'use strict';
const smpp = require('smpp');
const lines = require('readline').createInterface({ input: process.stdin });

const options = JSON.parse(process.argv[2] || '{}');
const sessions = new Set();
let next = 1000;

function tell(event) {
  process.stdout.write(JSON.stringify(event) + '\n');
}

/** What a message carries, in a form that survives JSON. */
function shown(pdu) {
  const body = pdu.short_message || {};
  const payload = pdu.message_payload || {};
  const text = (body.message && body.message.length ? body.message : payload.message) || '';
  const udh = body.udh || payload.udh;
  return {
    source: pdu.source_addr,
    destination: pdu.destination_addr,
    source_ton: pdu.source_addr_ton,
    destination_ton: pdu.dest_addr_ton,
    esm_class: pdu.esm_class,
    data_coding: pdu.data_coding,
    registered_delivery: pdu.registered_delivery,
    text: Buffer.isBuffer(text) ? text.toString('hex') : text,
    udh: udh ? Buffer.concat((Array.isArray(udh) ? udh : [udh]).map((x) => Buffer.from(x))).toString('hex') : null,
    payload: Boolean(pdu.message_payload),
  };
}

/** yymmddhhmm, as receipts carry it. */
function stamp() {
  return new Date().toISOString().replace(/[-:T]/g, '').slice(2, 12);
}

const server = smpp.createServer({}, (session) => {
  sessions.add(session);
  session.on('error', (error) => tell({ event: 'error', text: String(error) }));
  session.on('close', () => {
    sessions.delete(session);
    tell({ event: 'closed' });
  });
  for (const bind of ['bind_transceiver', 'bind_transmitter', 'bind_receiver']) {
    session.on(bind, (pdu) => {
      tell({ event: 'bind', command: bind, system_id: pdu.system_id, password: pdu.password });
      session.receiver = bind !== 'bind_transmitter';
      session.send(pdu.response({ system_id: 'upstream' }));
    });
  }
  session.on('unbind', (pdu) => {
    tell({ event: 'unbind' });
    session.send(pdu.response());
  });
  session.on('enquire_link', (pdu) => session.send(pdu.response()));
  session.on('submit_sm', (pdu) => {
    const number = next++;
    const id = String(number).padStart(10, '0');
    if (options.status) {
      tell({ event: 'submit', refused: options.status, ...shown(pdu) });
      session.send(pdu.response({ command_status: options.status }));
      return;
    }
    tell({ event: 'submit', id, ...shown(pdu) });
    session.send(pdu.response({ message_id: options.ids === 'hex' ? number.toString(16) : id }));
    if (options.receipts && pdu.registered_delivery & 1) {
      const now = stamp();
      session.deliver_sm(
        {
          source_addr: pdu.destination_addr,
          source_addr_ton: pdu.dest_addr_ton,
          source_addr_npi: pdu.dest_addr_npi,
          destination_addr: pdu.source_addr,
          dest_addr_ton: pdu.source_addr_ton,
          dest_addr_npi: pdu.source_addr_npi,
          esm_class: 4,
          short_message:
            `id:${id} sub:001 dlvrd:001 submit date:${now} done date:${now} stat:DELIVRD err:000 text:`,
        },
        (answer) => tell({ event: 'receipt-answered', id, status: answer.command_status }),
      );
    }
  });
});

lines.on('line', (line) => {
  const action = JSON.parse(line);
  if (action.mo) {
    const session = [...sessions].find((each) => each.receiver);
    if (!session) {
      tell({ event: 'error', text: 'nobody is bound to receive' });
      return;
    }
    session.deliver_sm(action.mo, (answer) => tell({ event: 'mo-answered', status: answer.command_status }));
  }
  if (action.drop) {
    for (const session of sessions) session.destroy();
  }
});
lines.on('close', () => process.exit(0));
server.listen(options.port || 0, '127.0.0.1', function () {
  tell({ event: 'listening', port: this.address().port });
});
