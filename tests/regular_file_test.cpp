// Functions that read files must never wait for a pipe, and must read only regular files, whatever
// kind of file a name refers to.
#include "core/regular_file.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <fstream>

#include "apps/recipes/results_page.h"
#include "apps/run/config.h"
#include "apps/run/folder_lock.h"
#include "apps/run/metrics_file.h"
#include "core/atomic_file.h"
#include "core/gguf_file.h"
#include "core/mapped_file.h"
#include "core/safetensors_parts.h"
#include "core/text_file.h"
#include "nn/models/hugging_face.h"
#include "nn/text/chat_template.h"
#include "nn/text/tokenizer_json.h"
#include "tests/contents.h"
#include "tests/paths.h"
#include "tests/program.h"

namespace regular_file_test {

using namespace longhand;
namespace fs = std::filesystem;

struct Fixture : TemporaryFolder {
  Folder here{path()};

  std::string refused(const std::string& name, Links links = Links::refuse) const {
    return refusal([&] { here.open_file(name, O_RDONLY, links); });
  }
  void make_pipe(const std::string& name) const {
    fs::remove(path() / name);
    BOOST_REQUIRE(::mkfifo((path() / name).c_str(), 0600) == 0);
  }
};

}  // namespace regular_file_test

BOOST_FIXTURE_TEST_SUITE(regular_file_test, Fixture)

BOOST_AUTO_TEST_CASE(only_a_regular_file_is_opened_and_the_error_names_the_kind) {
  write_atomically(path() / "file", "text");
  BOOST_TEST(here.open_file("file", O_RDONLY, Links::refuse).valid());
  BOOST_TEST(!here.open_file("absent", O_RDONLY, Links::refuse).valid());
  const std::string at = path().string();
  BOOST_TEST(refusal([&] { open_regular_file(path() / "absent"); }) ==
             at + "/absent: cannot be read: No such file or directory");
  make_pipe("pipe");
  BOOST_TEST(refused("pipe") == at + "/pipe: expected a file, got a pipe");
  fs::create_directory(path() / "folder");
  BOOST_TEST(refused("folder") == at + "/folder: expected a file, got a folder");
  BOOST_TEST(refusal([] { open_regular_file("/dev/null"); }) ==
             "/dev/null: expected a file, got a device");
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, (at + "/socket").c_str(), sizeof address.sun_path - 1);
  BOOST_REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
                0);
  BOOST_TEST(refused("socket") == at + "/socket: expected a file, got a socket");
}

BOOST_AUTO_TEST_CASE(links_are_followed_only_where_links_are_allowed) {
  write_atomically(path() / "file", "text");
  fs::create_symlink("file", path() / "link");
  fs::create_symlink("loop", path() / "loop");
  fs::create_symlink("/dev/zero", path() / "device");
  BOOST_TEST(here.read("link", 10).value() == "text");
  const std::string at = path().string();
  BOOST_TEST(refused("link") == at + "/link: expected a file, got a link");
  BOOST_TEST(refused("loop") == at + "/loop: expected a file, got a link");
  BOOST_TEST(contains(refused("loop", Links::follow), at + "/loop: cannot be read: "));
  BOOST_TEST(refused("device", Links::follow) == at + "/device: expected a file, got a device");
  BOOST_TEST(contains(
      refusal([&] { here.open_file("link", O_WRONLY | O_CREAT | O_TRUNC, Links::refuse); }),
      "got a link"));
  BOOST_TEST(contents(path() / "file") == "text");
}

BOOST_AUTO_TEST_CASE(a_created_file_replaces_a_link_or_a_pipe) {
  write_atomically(path() / "kept", "text");
  fs::create_symlink("kept", path() / "log");
  const auto write_log = [&] {
    const FileDescriptor log = here.create_file("log");
    BOOST_TEST(::write(log.get(), "said", 4) == 4);
  };
  write_log();
  BOOST_TEST(contents(path() / "kept") == "text");
  BOOST_TEST(fs::symlink_status(path() / "log").type() == fs::file_type::regular);
  BOOST_TEST(contents(path() / "log") == "said");
  make_pipe("log");
  write_log();
  BOOST_TEST(contents(path() / "log") == "said");
  fs::create_hard_link(path() / "kept", path() / "hard");
  here.create_file("hard");
  BOOST_TEST(contents(path() / "kept") == "text");
  fs::create_directory(path() / "folder");
  BOOST_TEST(contains(refusal([&] { here.create_file("folder"); }), "got a folder"));
}

BOOST_AUTO_TEST_CASE(subfolders_are_opened_without_following_links) {
  fs::create_directories(path() / "a/b");
  write_atomically(path() / "a/b/file", "text");
  fs::create_directory_symlink("a", path() / "link");
  BOOST_TEST(here.below("a/b").read("file", 10).value() == "text");
  BOOST_TEST(here.below(".").path() == path());
  for (const char* wrong :
       {"link", "link/b", "../x", "a/../a", "/", "/etc", "a/b/file", "absent"}) {
    BOOST_CHECK_THROW(here.below(wrong), Error);
  }
  BOOST_TEST(contains(refusal([&] { here.below("link/b"); }), "expected a folder, got a link"));
}

BOOST_AUTO_TEST_CASE(no_reader_waits_for_a_pipe) {
  // A function that opened the pipe would wait forever, because no process opens the other end.
  const auto refuses_pipe = [&](const std::string& name, const std::function<void()>& read) {
    make_pipe(name);
    const std::string message = refusal(read);
    BOOST_TEST_CONTEXT(name) {
      BOOST_TEST(contains(message, name + ": expected a file, got a pipe"));
    }
    fs::remove(path() / name);
  };
  refuses_pipe("text", [&] { read_text(path() / "text", 10); });
  refuses_pipe("mapped", [&] { MappedFile(path() / "mapped"); });
  refuses_pipe("config.ini", [&] { app::Config::read(path() / "config.ini"); });
  refuses_pipe("metrics.jsonl", [&] { app::read_metrics(here); });
  refuses_pipe("lock", [&] { (void)app::writer_of(here); });
  refuses_pipe("lock", [&] { app::FolderLock{here}; });
  refuses_pipe("results.json", [&] { app::results_in(path()); });
  refuses_pipe("model.gguf", [&] { GgufFile::is_gguf(path() / "model.gguf"); });
  refuses_pipe("config.json", [&] { nn::read_config(path()); });
  refuses_pipe("chat_template.jinja", [&] { nn::ChatTemplate::jinja_of(path()); });
  refuses_pipe("tokenizer_config.json", [&] { nn::ChatTemplate::jinja_of(path()); });
  refuses_pipe("tokenizer.json", [&] { nn::read_tokenizer(path()); });
  refuses_pipe("model.safetensors", [&] { SafetensorsParts::open(path(), "model"); });
  refuses_pipe("model.safetensors.index.json", [&] { SafetensorsParts::open(path(), "model"); });
}

BOOST_AUTO_TEST_CASE(a_lock_or_log_that_is_a_link_is_not_written_through) {
  write_atomically(path() / "kept", "{\"step\":1}\n");
  for (const char* name : {"lock", "metrics.jsonl"}) {
    fs::create_symlink("kept", path() / name);
    BOOST_TEST(contains(refusal([&] {
                          app::FolderLock lock{here};
                          app::open_metrics(here, 5, true);
                        }),
                        "got a link"));
    fs::remove(path() / name);
    BOOST_TEST(contents(path() / "kept") == "{\"step\":1}\n");
  }
}

/// Finds code that opens files directly instead of calling open_regular_file.
BOOST_AUTO_TEST_CASE(no_source_file_opens_files_in_another_way) {
  // These source files may open files directly, because they open folders, pipes named by a user,
  // /proc or /dev/null.
  const std::vector<std::string> allowed{
      "core/folder.cpp",  "core/regular_file.cpp", "core/text_file.cpp",      "apps/main.cpp",
      "apps/machine.cpp", "nn/ranks/watch.cpp",    "apps/serve/live_runs.cpp"};
  const std::vector<std::string> opens{"std::ifstream", "std::fstream", "fopen(",    " ::open(",
                                       "(::open(",      " ::openat(",   "(::openat("};
  const fs::path source = fs::path(test_data).parent_path();
  std::size_t seen = 0;
  for (const char* part : {"apps", "autograd", "core", "nn", "tasks"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(source / part)) {
      const std::string name = entry.path().lexically_relative(source).string();
      if (!name.ends_with(".cpp") && !name.ends_with(".h")) continue;
      ++seen;
      const std::string text = contents(entry.path());
      const bool found = std::ranges::any_of(
          opens, [&](const std::string& call) { return text.find(call) != text.npos; });
      BOOST_TEST((!found || std::ranges::find(allowed, name) != allowed.end()), name);
    }
  }
  BOOST_TEST(seen > 300u);
}

BOOST_AUTO_TEST_SUITE_END()
