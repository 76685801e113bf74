#include "core/folder.h"

#include "tests/check.h"

#include "core/atomic_file.h"
#include "core/error.h"
#include "tests/temporary_folder.h"

BOOST_AUTO_TEST_SUITE(folder_test)

using namespace longhand;
namespace fs = std::filesystem;

BOOST_AUTO_TEST_CASE(writes_follow_a_moved_folder) {
  const TemporaryFolder scratch;
  const Folder folder = Folder::make(scratch / "a/b");
  BOOST_TEST(folder.in_place());
  fs::rename(scratch / "a/b", scratch / "c");
  fs::create_directory(scratch / "a/b");
  BOOST_TEST(!folder.in_place());
  write_atomically(folder, "file", "text");
  BOOST_TEST(fs::is_empty(scratch / "a/b"));
  BOOST_TEST(fs::exists(scratch / "c/file"));
  BOOST_TEST(folder.read("file", 10).value() == "text");
  BOOST_CHECK_THROW(folder.require_in_place(), Error);
  fs::remove_all(scratch / "c");
  BOOST_CHECK_THROW(write_atomically(folder, "file", "text"), Error);
  BOOST_TEST(fs::is_empty(scratch / "a/b"));
}

BOOST_AUTO_TEST_CASE(entries_are_listed_renamed_exchanged_and_removed_with_their_contents) {
  const TemporaryFolder scratch;
  const Folder folder(scratch.path());
  write_atomically(folder.make_folder("x").make_folder("y"), "deep", "1");
  fs::create_directory_symlink(scratch / "x", scratch / "x/y/loop");
  write_atomically(folder, "z", "2");
  BOOST_TEST(folder.names() == (std::vector<std::string>{"x", "z"}));
  if (folder.exchange("x", "z")) {
    BOOST_TEST(folder.read("x", 10).value() == "2");
    BOOST_TEST(folder.exchange("x", "z"));
  }
  folder.rename("x", "w");
  folder.remove("w");
  folder.remove("w");  // removing a missing file is not an error
  BOOST_TEST(folder.names() == (std::vector<std::string>{"z"}));
}

BOOST_AUTO_TEST_CASE(a_missing_file_reads_as_nothing_and_an_unreadable_one_is_refused) {
  const TemporaryFolder scratch;
  const Folder folder(scratch.path());
  BOOST_TEST(!folder.read("absent", 10));
  folder.make_folder("taken");
  BOOST_CHECK_THROW(folder.read("taken", 10), Error);
  write_atomically(folder, "long", "12345678901");
  BOOST_CHECK_THROW(folder.read("long", 10), Error);
  BOOST_TEST(folder.read("long", 11).value() == "12345678901");
  BOOST_CHECK_THROW(Folder(scratch / "absent"), Error);
  write_atomically(folder, "file", "");
  BOOST_CHECK_THROW(folder.make_folder("file"), Error);
}

BOOST_AUTO_TEST_SUITE_END()
