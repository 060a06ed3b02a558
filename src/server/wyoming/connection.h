// Wyoming at a port of its own.
#pragma once

#include <string>

#include "server/host/host.h"
#include "server/http/http_server.h"

namespace syrinx::server::wyoming {

// For HttpServer::listen(); port 0: any free one.  The host must outlive the transport.
ProtocolPort wyoming_port(int port, Host& host);

}  // namespace syrinx::server::wyoming
