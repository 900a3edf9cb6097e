// Sends to one peer, within the caps of campaigns and the send hours of numbers; policy.txt is an example of its policy
// document.

let peer = '';
let campaigns = new Map(); // sender → { name, amount }, each with a pace bucket of a day
let hours = [];            // [{ prefix, zone, opens, closes }]

const minute = (text) => {
  const found = /^(\d\d):(\d\d)$/.exec(text);
  return found ? Number(found[1]) * 60 + Number(found[2]) : NaN;
};

export const routing = {
  configure(document) {
    const read = { peer: '', campaigns: new Map(), hours: [] };
    document.split('\n').forEach((line, index) => {
      const words = line.split(/\s+/).filter((word) => word !== '');
      if (words.length === 0 || words[0].startsWith('#')) return;
      const [verb, first, second, third, fourth] = words;
      if (verb === 'peer' && words.length === 2) {
        read.peer = first;
      } else if (verb === 'campaign' && words.length === 4 && Number(third) >= 1) {
        read.campaigns.set(first, { name: second, amount: Math.floor(Number(third)) });
      } else if (verb === 'hours' && words.length === 5 && minute(third) < 1440 && minute(fourth) <= 1440) {
        read.hours.push({ prefix: first, zone: second, opens: minute(third), closes: minute(fourth) });
      } else {
        // The admin sees this error as the reason of the refusal.
        throw `line ${index + 1}: expected 'peer PEER', 'campaign SENDER NAME AMOUNT' or 'hours PREFIX ZONE HH:MM HH:MM'`;
      }
    });
    ({ peer, campaigns, hours } = read);
  },

  route(message) {
    const changes = [];
    const campaign = campaigns.get(message.source.value);
    if (campaign) {
      const definition = {
        amount: campaign.amount,
        per: { tag: 'day', val: 'America/Los_Angeles' },
        counts: 'segments',
      };
      changes.push({ tag: 'use-pace-bucket', val: { name: `campaign.${campaign.name}`, definition } });
    }
    const found = hours.find(({ prefix }) => message.destination.value.startsWith(prefix));
    if (found) {
      const { prefix, zone, opens, closes } = found;
      const definition = { zone, hours: [{ days: [], opens, closes }] };
      changes.push({ tag: 'use-send-window', val: { name: `hours.${prefix}`, definition } });
    }
    return { verdict: { tag: 'forward', val: [{ peer, rank: 0, weight: 1, cost: 0 }] }, changes };
  },
};
