// Submits messages to an HTTP API; policy.txt is an example of its policy document.
//
// A function owns its arguments and frees them; the generated code frees the results.

#include "peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Short names for declarations of the generated header.
typedef exports_switchyard_hooks_peering_message_t message_t;
typedef exports_switchyard_hooks_peering_attempt_t attempt_t;
typedef exports_switchyard_hooks_peering_submitted_t submitted_t;
typedef exports_switchyard_hooks_peering_request_t request_t;
typedef exports_switchyard_hooks_peering_called_t called_t;
typedef exports_switchyard_hooks_peering_receipt_t receipt_t;

static char *url;  // of the API

// Parses one line. Returns false if the line is malformed.
static bool read_line(char **address, char *line) {
  char *rest, *verb = strtok_r(line, " \t\r", &rest);
  if (!verb || verb[0] == '#') return true;
  char *word = strtok_r(NULL, " \t\r", &rest);
  if (strcmp(verb, "url") != 0 || !word || strtok_r(NULL, " \t\r", &rest)) return false;
  *address = word;
  return true;
}

bool exports_switchyard_hooks_peering_configure(peer_string_t *document, peer_string_t *err) {
  char *text = strndup((char *)document->ptr, document->len), *rest = text, *address = NULL;
  peer_string_free(document);
  for (size_t number = 1; rest; number++) {
    char *line = strsep(&rest, "\n");
    if (!read_line(&address, line)) {
      char words[64];
      snprintf(words, sizeof words, "line %zu: expected 'url ADDRESS'", number);
      peer_string_dup(err, words);
      free(text);
      return false;
    }
  }
  if (address) url = strdup(address);
  free(text);
  if (!address) peer_string_dup(err, "there is no line 'url ADDRESS'");
  return address != NULL;
}

// Appends a text to a form: all but unreserved characters as percent signs and hexadecimal digits. Returns the new end.
static char *escape(char *end, const peer_string_t *text) {
  static const char unreserved[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  for (size_t i = 0; i < text->len; i++) {
    unsigned char octet = text->ptr[i];
    if (octet && strchr(unreserved, octet)) *end++ = (char)octet;
    else end += sprintf(end, "%%%02X", octet);
  }
  return end;
}

static void refuse(submitted_t *ret, uint8_t class, uint32_t code, const char *note) {
  ret->outcome.tag = EXPORTS_SWITCHYARD_HOOKS_PEERING_OUTCOME_REFUSED;
  ret->outcome.val.refused.class_ = class;
  ret->outcome.val.refused.code = code;
  ret->note.is_some = note != NULL;
  if (note) peer_string_dup(&ret->note.val, note);
}

static void read_answer(switchyard_hooks_http_response_t *answer, submitted_t *ret) {
  uint16_t status = answer->status;
  if (status >= 200 && status < 300) {
    const char *id = (const char *)answer->body.ptr;
    size_t length = answer->body.len;
    while (length && (unsigned char)id[length - 1] <= ' ') length--;
    ret->outcome.tag = EXPORTS_SWITCHYARD_HOOKS_PEERING_OUTCOME_ACCEPTED;
    ret->outcome.val.accepted.is_some = true;
    peer_string_dup_n(&ret->outcome.val.accepted.val, id, length);
  } else if (status == 429) {
    refuse(ret, EXPORTS_SWITCHYARD_HOOKS_PEERING_REFUSAL_CLASS_THROTTLED, status, NULL);
    ret->outcome.val.refused.retry_after.is_some = true;
    ret->outcome.val.refused.retry_after.val = 1000;
  } else if (status >= 400 && status < 500) {
    refuse(ret, EXPORTS_SWITCHYARD_HOOKS_PEERING_REFUSAL_CLASS_PERMANENT, status, "refused by the API");
  } else {
    refuse(ret, EXPORTS_SWITCHYARD_HOOKS_PEERING_REFUSAL_CLASS_TEMPORARY, status, "the API fails");
  }
}

void exports_switchyard_hooks_peering_submit(message_t *message, attempt_t *attempt, submitted_t *ret) {
  memset(ret, 0, sizeof *ret);
  peer_string_t text;
  if (switchyard_hooks_details_text(&text)) {
    size_t most = 3 * (message->source.value.len + message->destination.value.len + text.len) + 32;
    char *body = malloc(most), *end = body;
    end = escape(stpcpy(end, "from="), &message->source.value);
    end = escape(stpcpy(end, "&to="), &message->destination.value);
    end = escape(stpcpy(end, "&text="), &text);
    peer_string_free(&text);
    peer_tuple2_string_string_t header;
    peer_string_set(&header.f0, "content-type");
    peer_string_set(&header.f1, "application/x-www-form-urlencoded");
    switchyard_hooks_http_request_t request = {.headers = {&header, 1}, .body = {(uint8_t *)body, end - body}};
    peer_string_set(&request.method, "POST");
    peer_string_set(&request.url, url);
    switchyard_hooks_http_response_t answer;
    switchyard_hooks_http_failure_t failure;
    if (switchyard_hooks_http_fetch(&request, &answer, &failure)) {
      read_answer(&answer, ret);
      switchyard_hooks_http_response_free(&answer);
    } else {
      // The host makes the outcome uncertain if the peer may have the message.
      refuse(ret, EXPORTS_SWITCHYARD_HOOKS_PEERING_REFUSAL_CLASS_TEMPORARY, 0, "no answer");
      switchyard_hooks_http_failure_free(&failure);
    }
    free(body);
  } else {
    refuse(ret, EXPORTS_SWITCHYARD_HOOKS_PEERING_REFUSAL_CLASS_PERMANENT, 0, "8-bit data has no text");
  }
  exports_switchyard_hooks_peering_message_free(message);
  exports_switchyard_hooks_peering_attempt_free(attempt);
}

// The value of a field in a query. Escapes are not decoded: this API needs none.
static bool field(const peer_string_t *query, const char *name, peer_string_t *value) {
  const char *start = (const char *)query->ptr, *end = start + query->len;
  size_t length = strlen(name);
  while (start < end) {
    const char *next = memchr(start, '&', end - start);
    if (!next) next = end;
    if ((size_t)(next - start) > length && memcmp(start, name, length) == 0 && start[length] == '=') {
      value->ptr = (uint8_t *)start + length + 1;
      value->len = next - start - length - 1;
      return true;
    }
    start = next + 1;
  }
  return false;
}

static bool is(const peer_string_t *value, const char *text) {
  return value->len == strlen(text) && memcmp(value->ptr, text, value->len) == 0;
}

static bool has_secret(const peer_string_t *query) {
  peer_string_t name, secret, given;
  peer_string_set(&name, "callback");
  if (!switchyard_hooks_secrets_get(&name, &secret)) return false;
  bool same = field(query, "key", &given) && given.len == secret.len && memcmp(given.ptr, secret.ptr, given.len) == 0;
  peer_string_free(&secret);
  return same;
}

void exports_switchyard_hooks_peering_callback(peer_string_t *peer, request_t *request, called_t *ret) {
  memset(ret, 0, sizeof *ret);
  peer_string_t id, status;
  if (!has_secret(&request->query)) {
    ret->response.status = 403;
  } else if (!field(&request->query, "id", &id) || !field(&request->query, "status", &status)) {
    ret->response.status = 400;
  } else {
    receipt_t *receipt = calloc(1, sizeof *receipt);
    peer_string_dup_n(&receipt->id, (const char *)id.ptr, id.len);
    receipt->state = is(&status, "delivered") ? EXPORTS_SWITCHYARD_HOOKS_PEERING_RECEIPT_STATE_DELIVERED
                     : is(&status, "failed")  ? EXPORTS_SWITCHYARD_HOOKS_PEERING_RECEIPT_STATE_UNDELIVERABLE
                                              : EXPORTS_SWITCHYARD_HOOKS_PEERING_RECEIPT_STATE_ENROUTE;
    ret->receipts.ptr = receipt;
    ret->receipts.len = 1;
    ret->response.status = 204;
  }
  peer_string_free(peer);
  exports_switchyard_hooks_peering_request_free(request);
}
