// Finds the network of a number in a table of the appliance; policy.txt is an example of its policy document.
//
// A function owns its arguments and frees them; the generated code frees the results.

#include "lookup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_WORDS 3

// Short names for declarations of the generated header.
typedef exports_switchyard_hooks_number_lookup_number_t number_t;
typedef exports_switchyard_hooks_number_lookup_looked_up_t looked_up_t;
typedef exports_switchyard_hooks_number_lookup_known_t known_t;
typedef switchyard_hooks_types_attribute_t attribute_t;

typedef struct {
  char *name;
  uint32_t table;  // the appliance's table
  uint64_t valid;  // how long an answer holds, in milliseconds
} policy_t;

static policy_t policy;

// Parses one line. Returns false if the line is malformed.
static bool read_line(policy_t *read, char *line) {
  char *words[MOST_WORDS], *rest, *end;
  size_t count = 0;
  for (char *word = strtok_r(line, " \t\r", &rest); word; word = strtok_r(NULL, " \t\r", &rest)) {
    if (count == 0 && word[0] == '#') return true;
    if (count == MOST_WORDS) return false;
    words[count++] = word;
  }
  if (count == 0) return true;
  if (count != 2) return false;
  if (strcmp(words[0], "table") == 0) {
    read->name = words[1];
    return true;
  }
  if (strcmp(words[0], "valid") != 0 || words[1][0] < '0' || words[1][0] > '9') return false;
  read->valid = strtoul(words[1], &end, 10) * 1000ull;
  return *end == 0;
}

bool exports_switchyard_hooks_number_lookup_configure(lookup_string_t *document, lookup_string_t *err) {
  policy_t read = {.valid = 60000};
  char *text = strndup((char *)document->ptr, document->len), *rest = text;
  lookup_string_free(document);
  for (size_t number = 1; rest; number++) {
    char *line = strsep(&rest, "\n");
    if (!read_line(&read, line)) {
      char words[96];
      snprintf(words, sizeof words, "line %zu: expected 'table NAME' or 'valid SECONDS'", number);
      lookup_string_dup(err, words);
      free(text);
      return false;
    }
  }
  bool opened = false;
  if (read.name) {
    lookup_string_t name;
    lookup_string_set(&name, read.name);
    opened = switchyard_hooks_tables_open(&name, &read.table, err);
  } else {
    lookup_string_dup(err, "there is no line 'table NAME'");
  }
  free(text);
  read.name = NULL;
  if (opened) policy = read;
  return opened;
}

static void unknown(looked_up_t *ret, const char *why) {
  ret->answer.tag = EXPORTS_SWITCHYARD_HOOKS_NUMBER_LOOKUP_ANSWER_UNKNOWN;
  ret->answer.val.unknown = policy.valid;
  ret->note.is_some = true;
  lookup_string_dup(&ret->note.val, why);
}

void exports_switchyard_hooks_number_lookup_look_up(number_t *number, looked_up_t *ret) {
  memset(ret, 0, sizeof *ret);
  switchyard_hooks_tables_found_text_t row;
  if (!number->international) {
    unknown(ret, "not an international number");
  } else if (!switchyard_hooks_tables_get_prefix(policy.table, &number->digits, &row)) {
    unknown(ret, "not in the table");
  } else {
    const char *text = (const char *)row.value.ptr, *dash = memchr(text, '-', row.value.len);
    if (dash) {
      size_t digits = dash - text;
      known_t *found = &ret->answer.val.found;
      ret->answer.tag = EXPORTS_SWITCHYARD_HOOKS_NUMBER_LOOKUP_ANSWER_FOUND;
      found->lifetime = policy.valid;
      found->attributes.len = 2;
      found->attributes.ptr = calloc(2, sizeof(attribute_t));
      lookup_string_dup(&found->attributes.ptr[0].name, "mcc");
      lookup_string_dup_n(&found->attributes.ptr[0].value, text, digits);
      lookup_string_dup(&found->attributes.ptr[1].name, "mnc");
      lookup_string_dup_n(&found->attributes.ptr[1].value, dash + 1, row.value.len - digits - 1);
    } else {
      unknown(ret, "the row is not MCC-MNC");
    }
    switchyard_hooks_tables_found_text_free(&row);
  }
  exports_switchyard_hooks_number_lookup_number_free(number);
}
