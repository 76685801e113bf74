# Comments are plain text: what Doxygen would read as a command, a tag or a link is none.
/^ *\/\/\//s/[\\<>#@&]/\\&/g
