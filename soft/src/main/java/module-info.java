/** Software RDMA provider: iWARP over TCP in pure Java. */
@org.jspecify.annotations.NullMarked
module org.verbena.soft {
    requires static org.jspecify;
    requires org.slf4j;
    requires org.verbena.transport;
}
