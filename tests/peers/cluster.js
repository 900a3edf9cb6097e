// A client of number pools that uses a Redis Cluster library: npm `ioredis`.
//
// Reads one JSON line per action from standard input, and writes one JSON line per event to standard output.
// Actions, each answered by the event "done" with {"answer"} or {"error"}: {"do": [word, …]}, {"slots": null}: which node
// serves the first and the last slot.
// Start: node cluster.js '{"port": …}'
'use strict';
const { Cluster } = require('ioredis');
const lines = require('readline').createInterface({ input: process.stdin });

const options = JSON.parse(process.argv[2]);
const cluster = new Cluster([{ host: '127.0.0.1', port: options.port }]);
cluster.on('error', (error) => console.error(String(error)));

function tell(event) {
  process.stdout.write(JSON.stringify({ event: 'done', ...event }) + '\n');
}

async function act(action) {
  if (action.do) return cluster.call(...action.do);
  return [cluster.slots[0], cluster.slots[16383]];
}

lines.on('line', (line) => {
  act(JSON.parse(line)).then(
    (answer) => tell({ answer }),
    (error) => tell({ error: String(error) }),
  );
});
lines.on('close', () => cluster.disconnect());
