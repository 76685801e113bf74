#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "apps/run/continuation.h"
#include "apps/run/run_folder.h"
#include "apps/serve/completion_request.h"
#include "apps/serve/http_server.h"
#include "tasks/conversation.h"

namespace longhand::app {

/// Serves a run's model over HTTP, in the form of OpenAI's interface. Requests with POST require
/// the token that `longhand serve` printed, as the API key or in the header X-Longhand-Token.
///
///   GET  /                     a page for chats
///   GET  /v1/models            the name of the model
///   POST /v1/completions       continues a prompt
///   POST /v1/chat/completions  answers the last message of a conversation
///
/// One thread generates the texts, one request after another. Up to `most_waiting` requests wait.
class ModelServer {
 public:
  struct Settings {
    std::string name;  // the model's name in responses
    std::string token;
    // Values of the fields that a request omits. Request n uses seed + n.
    nn::Sampling sampling;
    std::int64_t most = 512;  // maximum number of new tokens
    std::uint64_t seed = 1;
  };
  static constexpr std::size_t most_waiting = 16;

  /// Without a format for conversations, requests for chats are refused.
  ModelServer(LoadedRun loaded, std::optional<tasks::ConversationFormat> format, Settings settings);
  ~ModelServer();
  HttpResponse answer(const HttpRequest& request);

 private:
  struct Job;

  HttpResponse accept(const HttpRequest& request, bool is_chat);
  std::unique_ptr<Job> job_for(CompletionRequest request);
  void work();
  void run(Job& job);

  LoadedRun loaded_;
  std::optional<tasks::ConversationFormat> format_;
  Settings settings_;
  std::uint64_t accepted_ = 0;  // number of accepted requests
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Job>> waiting_;
  std::atomic<bool> over_ = false;
  std::thread worker_;  // the last member: it uses the others
};

}  // namespace longhand::app
