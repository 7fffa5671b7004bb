/** The Channel API. */
@org.jspecify.annotations.NullMarked
module org.verbena.api {
    requires static org.jspecify;
    requires org.slf4j;
    requires transitive org.verbena.transport;

    exports org.verbena.api;
}
