/** FFM bindings to librdmacm. */
@org.jspecify.annotations.NullMarked
module org.verbena.cm {
    requires static org.jspecify;
    requires org.slf4j;
    requires transitive org.verbena.verbs;

    exports org.verbena.cm;
    exports org.verbena.cm.sync;
}
