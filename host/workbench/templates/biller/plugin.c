// Charges by the longest prefix of the destination, for each segment; policy.txt is an example of its policy document.
//
// A function owns its arguments and frees them; the generated code frees the results.

#include "biller.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_WORDS 4

// Short names for declarations of the generated header.
typedef exports_switchyard_hooks_billing_first_leg_t first_leg_t;
typedef exports_switchyard_hooks_billing_list_settlement_t settlements_t;
typedef exports_switchyard_hooks_billing_message_t message_t;
typedef exports_switchyard_hooks_billing_quote_t quote_t;
typedef switchyard_hooks_tables_list_row_t rows_t;
typedef switchyard_hooks_tables_row_t row_t;

typedef struct {
  char *text;  // the document, cut into words to which the rest points
  rows_t rows;
  char **free_accounts;
  size_t free_count;
  uint32_t table;  // the host's table of prefixes; a value is a price in millionths
} policy_t;

static policy_t policy;

static void forget(policy_t *old) {
  free(old->text);
  free(old->rows.ptr);
  free(old->free_accounts);
}

// Parses one line and adds its contents. Returns false if the line is malformed.
static bool read_line(policy_t *read, char *line) {
  char *words[MOST_WORDS], *rest, *end;
  size_t count = 0;
  for (char *word = strtok_r(line, " \t\r", &rest); word; word = strtok_r(NULL, " \t\r", &rest)) {
    if (count == 0 && word[0] == '#') return true;
    if (count == MOST_WORDS) return false;
    words[count++] = word;
  }
  if (count == 0) return true;
  if (count == 2 && strcmp(words[0], "free") == 0) {
    read->free_accounts[read->free_count++] = words[1];
    return true;
  }
  if (count != 3 || strcmp(words[0], "price") != 0 || words[2][0] < '0' || words[2][0] > '9') return false;
  row_t *row = &read->rows.ptr[read->rows.len++];
  biller_string_set(&row->key, words[1]);
  row->value = strtoul(words[2], &end, 10);
  return *end == 0;
}

bool exports_switchyard_hooks_billing_configure(biller_string_t *document, biller_string_t *err) {
  policy_t read = {0};
  size_t lines = 1;
  for (size_t i = 0; i < document->len; i++) lines += document->ptr[i] == '\n';
  read.text = strndup((char *)document->ptr, document->len);
  read.rows.ptr = calloc(lines, sizeof(row_t));
  read.free_accounts = calloc(lines, sizeof(char *));
  biller_string_free(document);

  char *rest = read.text;
  for (size_t number = 1; rest; number++) {
    char *line = strsep(&rest, "\n");
    if (!read_line(&read, line)) {
      char text[96];
      snprintf(text, sizeof text, "line %zu: expected 'price PREFIX MILLIONTHS' or 'free ACCOUNT'", number);
      biller_string_dup(err, text);
      forget(&read);
      return false;
    }
  }
  biller_string_t name;
  biller_string_set(&name, "prices");
  if (!switchyard_hooks_tables_define_prefixes(&name, &read.rows, &read.table, err)) {
    forget(&read);
    return false;
  }
  forget(&policy);
  policy = read;
  return true;
}

static bool pays_nothing(const biller_string_t *account) {
  for (size_t i = 0; i < policy.free_count; i++) {
    const char *name = policy.free_accounts[i];
    if (strlen(name) == account->len && memcmp(name, account->ptr, account->len) == 0) return true;
  }
  return false;
}

void exports_switchyard_hooks_billing_price(message_t *message, first_leg_t *leg, quote_t *ret) {
  memset(ret, 0, sizeof *ret);
  switchyard_hooks_tables_found_t found;
  char note[64] = "";
  if (pays_nothing(&message->origin)) {
    ret->price.tag = EXPORTS_SWITCHYARD_HOOKS_BILLING_FEE_FREE;
  } else if (switchyard_hooks_tables_match_destination(policy.table, UINT32_MAX, &found)) {
    ret->price.tag = EXPORTS_SWITCHYARD_HOOKS_BILLING_FEE_CHARGE;
    biller_string_dup_n(&ret->price.val.charge.account, (char *)message->origin.ptr, message->origin.len);
    ret->price.val.charge.amount = (uint64_t)found.value * message->parts;
    snprintf(note, sizeof note, "%u at %u", (unsigned)message->parts, (unsigned)found.value);
  } else {
    ret->price.tag = EXPORTS_SWITCHYARD_HOOKS_BILLING_FEE_REFUSE;
    strcpy(note, "no price for this destination");
  }
  ret->note.is_some = note[0] != 0;
  if (ret->note.is_some) biller_string_dup(&ret->note.val, note);
  exports_switchyard_hooks_billing_message_free(message);
  if (leg) exports_switchyard_hooks_billing_first_leg_free(leg);
}

bool exports_switchyard_hooks_billing_settle(settlements_t *settlements, biller_string_t *err) {
  (void)err;
  exports_switchyard_hooks_billing_list_settlement_free(settlements);
  return true;
}
